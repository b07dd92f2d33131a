"""Checkpoints: written whole, and resumed from."""
