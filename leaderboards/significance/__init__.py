"""Numbers over training seeds -> what may be said of them. The method, and what was not taken, stands in ``rules``."""
