"""A suite's definition, as data: recipe, experiment, resources, profile, suite, figures, claims, custom model."""
