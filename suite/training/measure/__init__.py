"""Measurements of a network: accuracy, attention maps and probes."""
