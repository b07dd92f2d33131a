"""The end of the data's path: a run store -> each suite's tables beside the paper's numbers, its figures, and an index.

Where to look, in the order in which a number passes:

    build       the command line; output: which files are written
    papers      the papers' tables (papers/*.csv); layout: whether a suite fits them
    collect     files -> runs; metrics: a result -> a number in the paper's unit
    usable_runs which runs may be averaged; search: which of several candidates is shown
    measured    runs -> cells (cells), by estimates: intervals and tests
    derived     gains, ratios and means of cells; ranking: who is best; aggregate: all of it, as boards
    render      boards -> Markdown, with notes and notation; sheets: CSV; terminal: what is printed; figures: pictures
    index       all suites in one table, with cost; accounting: what each run was and cost
"""
