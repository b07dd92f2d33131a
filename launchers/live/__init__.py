"""``grid.py --serve``: the board's page while the grid works, from the run store's files. Reads, and never trains.

    serving     starts the server as a sidecar of the grid, and ends it with the grid
    state       where every run stands, as ``--status`` knows it -> JSON
    board       a suite's page, as ``leaderboards/build.py`` writes it; the grid's own has the runs at work above
    cached_page each made anew by one thread, as long as somebody looks
    site        the index of all suites, the papers' claims and the published findings; which page is at which path
    server      answers a browser from what was made, and from nothing else

A process, since it draws figures and reads thousands of files: it may fail, or take its time, and no run notices.
"""
