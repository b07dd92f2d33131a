"""Models, their training and their results: specifications, protocols, suites, records."""
