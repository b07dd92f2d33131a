"""Numbers over training seeds -> what may be said of them.

    rules         the tests, as plain functions of vectors, frames and predictions
    estimates     means and their intervals, differences, ranks
    verdicts      on a printed number and on a claim
    power         the seeds that an effect takes, and when enough are trained

The method, and what was not taken, stands in ``rules``.
"""
