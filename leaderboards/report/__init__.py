"""Leaderboards and judged claims -> pages for a browser, each one file that needs nothing beside it.

    runs        the runs behind each cell: seeds, accuracy, commit, device, hours, loader, the command
    plots       ours, its interval and the paper's number as positions in a cell's small plot
    charts      learning curves and the papers' line figures as Vega-Lite specifications
    latex       a table for a paper; picture: the same as SVG and PDF; curves_picture: learning curves as PDF
    offers      tables and figures as files to download
    packed      what a page carries along: downloads, charts, runs; compressed, unpacked in the browser
    tables, suite_page, claims_page, index_page     a leaderboard, a paper's claims, all suites -> what a template shows
    findings_page   what the published boards say
    waiting_page    what a server shows until there is one of these
    rendering   templates/ and static/ -> one self-contained HTML file

Every number is read from the same cells, estimates and verdicts as the Markdown, and written by ``notation``.
A page is a function of its data alone, so that a server may show the same ones while a grid runs.
"""
