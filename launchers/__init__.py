"""How runs get carried out: the plan, this machine's process pool, the command line."""
