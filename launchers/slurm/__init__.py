"""Runs on a SLURM cluster."""
