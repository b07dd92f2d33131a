"""Numbers over training seeds -> what may be said of them.

    estimates     means and their intervals, differences and their tests, ranks
    verdicts      on a printed number and on a claim
    power         the seeds that an effect takes, and when enough are trained

The method, and why it was chosen, stands in ``estimates``.
"""
