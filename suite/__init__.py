"""Models, their training and their results: specifications, protocols, suites, records."""

import sys

if sys.argv[0] == "-m":  # a command of ours that is still being looked for
    import suite.ctrl_c  # noqa: F401
