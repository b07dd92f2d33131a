"""How a model is trained and evaluated."""
