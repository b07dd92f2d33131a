"""What a run costs, in FLOPs and hours; counts that are known."""
