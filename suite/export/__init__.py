"""The data's path beyond the suite: a finished run -> files that other tools read, by ``python -m suite.export``."""
