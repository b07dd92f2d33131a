"""Parts that several kinds of figure share."""
