"""Leaderboards, judged claims and the index as text.

    markdown, csv_files, terminal    a leaderboard -> Markdown, CSV, a terminal's tables
    index, claims, custom_models     all suites, a paper's judged claims, custom models -> the same
    notes, legend                    what else a reader must know
    notation, records, escaping      how a number and CSV are written, and others' text made harmless

Figures and pages for a browser write their numbers by ``notation``, too.
"""
