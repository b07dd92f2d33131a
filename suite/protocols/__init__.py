"""How each paper trains, at each scale: its recipes as data, and the experiments that its suites share.

Suites that name the same experiment through these functions share its finished run.
"""
