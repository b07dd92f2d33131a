"""Image sets: where their arrays come from (``fetch``), and how training reads them."""
