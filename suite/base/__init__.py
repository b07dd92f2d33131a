"""What everything stands on: errors, atomic files, archives, exit codes, the commit, command lines."""
