"""``grid.py --serve``: the board's page while the grid works, from the run store's files. Reads, and never trains.

    beside      starts the server as a process of its own beside the grid, and ends it with the grid
    address     where it listens, and the token that another address than this machine's own needs
    state       where every run stands, as ``--status`` knows it -> JSON
    board       the suite's page, as ``leaderboards/build.py`` writes it, with the runs at work above
    kept        both made anew, each by one thread, as long as somebody looks
    server      answers a browser from what was made, and from nothing else

A process, since it draws figures and reads thousands of files: it may fail, or take its time, and no run notices.
"""
