"""The papers' claims, one module a paper, and the list of all.

claim         their form, as data             composition   effects made of several numbers
judged        leaderboards of all suites -> the verdict on each claim; it alone knows numbers of ours
"""

from suite.papers.cmhsa.claims import CLAIMS as CMHSA
from suite.papers.convit.claims import CLAIMS as CONVIT
from suite.papers.cordonnier.claims import CLAIMS as CORDONNIER
from suite.papers.structured_init.claims import CLAIMS as STRUCTURED_INIT
from suite.spec.claims import PaperClaims

ALL_CLAIMS: tuple[PaperClaims, ...] = (CORDONNIER, CONVIT, CMHSA, STRUCTURED_INIT)
"""In the order in which the papers appeared."""
