"""The cost of a run, in FLOPs and hours; counts that are known."""
