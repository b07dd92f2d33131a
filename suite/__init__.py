"""What is trained and measured: specifications, models, training, records."""
