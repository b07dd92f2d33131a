"""Models, their training and their results: specifications, protocols, suites, records."""

from suite.streams import spell_what_streams_lack

spell_what_streams_lack()  # here, since every process of ours imports this, whoever has started it
