"""ViTs and ConvMixers of structured initialization, and the initializations."""
