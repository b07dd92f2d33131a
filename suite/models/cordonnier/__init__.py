"""Self-attention that looks by position, of Cordonnier et al."""
