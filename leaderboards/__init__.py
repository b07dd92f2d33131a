"""The end of the data's path: a run store -> each suite's tables beside the paper's numbers, its figures, and an index.

Where to look, in the order in which a number passes:

    build         the command line; board_files: which files are written
    joined_stores several run stores -> one, for as long as it is read
    collect       run store -> what is known of every arm
    metrics       which numbers of a result a column may show, in the papers' units
    usable_runs   which runs may be averaged, and which of several candidates is shown
    layout        the papers' tables (papers/*.csv), and whether a suite fits them
    cell_values   runs -> cells: measured, derived (gains, ratios, means) and compared
    significance/ the statistics: intervals, tests, ranks, verdicts, and when enough seeds are trained
    cells         what one place of a table holds
    effects       away from the paper's scale: one cell against another, beside the same in the paper's numbers
    boards        all cells of a table (its board), all tables of a suite at one scale (its leaderboard)
    text/         leaderboards, claims and the index as Markdown, CSV and lines; how a number is written anywhere
    figures/      a leaderboard and its runs -> the paper's figures
    report/       leaderboards and judged claims -> pages for a browser, each one file

Beside that way:

    challenges    models beside the papers', tested against each of them
    claims/       what the papers say of these cells, as data, one module a paper; judged: the verdict on each
    cost          what a profile has cost and will cost
    packed_records  a leaderboard's finished runs -> one file -> a store
    survey        all suites at every scale that has runs, and the claims judged on them, as data
    schemas/      the published forms of result.json and of the long CSV
    overview      published/ -> the tables of boards in README.md and the manual

``python leaderboards/build.py`` puts this folder first on the path, so no module may bear the name of one of the
standard library, such as numbers or statistics.
"""
