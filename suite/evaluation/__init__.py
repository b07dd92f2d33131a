"""Saved weights on other test sets than the suite's: ``sources`` reads their files, ``networks`` the weights."""
