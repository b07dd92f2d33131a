"""What is measured of a network: accuracy, attention maps, probes, utilization."""
