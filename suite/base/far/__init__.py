"""Files behind an address: downloaded as a whole, or read by ranges through a cache."""
