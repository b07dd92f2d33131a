"""Measurements of a network: accuracy, attention maps, probes, utilization."""
