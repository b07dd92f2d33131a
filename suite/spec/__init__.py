"""What is trained and shown, as data: recipe, experiment, resources, profile, suite, figures, claims, custom model."""
