"""Leaderboards and judged claims -> pages for a browser, each one file that needs nothing beside it.

    runs_behind     the runs behind each cell: seeds, accuracy, commit, device, hours, loader, the command
    pictures/       ours, its interval and the paper's number in a cell's small plot; learning curves
    effects         ours and the paper's in two plots side by side
    latex           a table for a paper; table_files: the same as SVG and PDF
    downloads       tables and figures as files to download
    compressed      what a page carries along: pictures, downloads, runs
    tables, suite_page, claims_page, index_page     a leaderboard, a paper's claims, all suites -> what a template shows
    findings_page   what the published boards say
    rendering       templates/ and static/ -> one self-contained HTML file

Every number is read from the same cells, estimates and verdicts as the Markdown, and written by ``notation``.
A page is a function of its data alone, so that a server may show the same pages while a grid runs.
"""
