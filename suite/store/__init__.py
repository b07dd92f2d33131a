"""The run store: a run's directory, results, attempts and heartbeat, and where a run stands."""
