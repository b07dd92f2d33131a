"""The plan, and what a run needs wherever it is trained."""
