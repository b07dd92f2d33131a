"""``grid.py --serve``: the board's page while the grid works, from the run store's files. Reads, and never trains.

    serving     starts the server as a sidecar of the grid, tells it how that ends, and ends it
    state       where the grid and every run stand, as ``--status`` knows it -> JSON
    board       a suite's page, as ``leaderboards/build.py`` writes it; the grid's own has the runs at work above
    cached_page each made anew for who asks, as often as it may
    site        the index of all suites, the papers' claims and the published findings; which page is at which path
    server      answers a browser from what was made, and from nothing else

A process, since it draws figures and reads thousands of files: it may fail, or take its time, and no run notices.
"""
