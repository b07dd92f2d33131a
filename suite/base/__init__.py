"""Errors, atomic files, archives, exit codes, the commit and command lines: what everything stands on."""
