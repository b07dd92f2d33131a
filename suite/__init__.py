"""Models, their training and their results: specifications, protocols, suites, records."""

import sys

from suite.base.streams import spell_what_streams_lack

if sys.argv[0] == "-m":  # a command of ours that is still being looked for
    import suite.base.ctrl_c  # noqa: F401

spell_what_streams_lack()  # here, since every process of ours imports this, whoever has started it
