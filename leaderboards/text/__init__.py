"""Leaderboards, judged claims and the index as text. Figures and pages, too, write their numbers by ``notation``."""
