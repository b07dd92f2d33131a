"""The end of the data's path: a run store -> each suite's tables beside the paper's numbers, its figures, and an index.

Where to look, in the order in which a number passes:

    build         the command line; board_files: which files are written
    boards/       runs -> usable runs -> cells -> all tables of a suite at one scale (its leaderboard)
    significance/ the statistics: intervals, tests, ranks, verdicts, and when enough seeds are trained
    judged_claims what our runs say of the papers' claims
    survey        all suites at every scale that has runs, and the claims judged on them, as data
    text/         leaderboards, claims and the index as Markdown, CSV and lines; how a number is written anywhere
    figures/      a leaderboard -> the paper's figures
    report/       leaderboards and judged claims -> pages for a browser, each one file

Beside that way:

    custom_models   models beside the papers', tested against each of them
    packed_records  a leaderboard's finished runs -> one file -> a store
    schemas/        the published forms of result.json and of the long CSV
    overview        published/ -> the tables of boards in README.md and the manual; coverage: COVERAGE.md

``python leaderboards/build.py`` puts this folder first on the path, so no module may bear the name of one of the
standard library, such as numbers or statistics.
"""
