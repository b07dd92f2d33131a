"""``--stage DIR``: a run's images, copied to its node's disk before it trains."""
