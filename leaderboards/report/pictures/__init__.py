"""Charts and small plots of the pages."""
