"""Learning curves and small plots of the pages."""
