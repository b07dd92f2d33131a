"""Judged claims -> ``claims.csv``, a Markdown page a paper, and lines for the terminal."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from leaderboards.judged_claims import JudgedClaim
from leaderboards.text.notation import NOTHING, format_signed, pad, section, significant_decimals
from leaderboards.text.records import render_records
from suite.spec.claims import PaperClaims
from suite.spec.suite import Suite

CSV_COLUMNS: dict[str, Callable[[JudgedClaim], object]] = {  # what each holds of a claim
    "claim": lambda judged: judged.name,
    "paper": lambda judged: judged.paper.name,
    "scale": lambda judged: judged.scale,
    "verdict": lambda judged: judged.verdict,
    "effect": lambda judged: judged.shown.estimate.mean,
    "low": lambda judged: (interval := judged.shown.estimate.interval) and interval.low,
    "high": lambda judged: (interval := judged.shown.estimate.interval) and interval.high,
    "p": lambda judged: judged.p,
    "p_adjusted": lambda judged: judged.adjusted,
    "num_tests": lambda judged: judged.num_tests or None,
    "adjustment": lambda judged: "Benjamini-Hochberg" if judged.num_tests and not judged.is_primary else "",
    "n": lambda judged: judged.shown.num_seeds,
    "unmatched": lambda judged: judged.shown.estimate.num_unmatched,
    "effects": lambda judged: len(judged.effects),
    "effects_that_hold": lambda judged: judged.num_hold,
    "effects_the_other_way": lambda judged: judged.num_opposite,
    "seeds_needed": lambda judged: judged.seeds_needed,
    "paper_effect": lambda judged: judged.shown.paper,
    "unit": lambda judged: judged.unit,
    "relation": lambda judged: judged.claim.relation,
    "primary": lambda judged: judged.claim.primary,
    "not_testable": lambda judged: " ".join(judged.reasons),
    "section": lambda judged: judged.claim.section,
}
ANSWERS = {  # to a question of which the claim says yes, by verdict
    "same direction": "Yes,", "reproduced": "Yes,", "reproduced, smaller": "Yes, but less,", "contradicted": "No,",
    "opposite direction": "No, the opposite,", "unresolved": "Not resolved", "undecided": "Not decided",
    "not testable here": "Not testable",
}  # fmt: skip
HEADINGS = {  # for people, of the texts of a claim
    "claim": "Claim", "section": "Section", "verdict": "Verdict", "effect": "Effect", "paper": "The paper's", "p": "p",
    "adjusted": "Adjusted p", "hold": "Hold", "n": "Seeds", "seeds": "Seeds to go",
}  # fmt: skip
LEGEND = """\
Effect is ours by seed with its 95 % confidence interval (Student's t), in points of accuracy unless a unit stands
beside it; of a claim of several effects it is the one that decides: that speaks least for a claim that rather holds,
most against another. The paper's is the same effect in its numbers, a dash where it only draws. p is two-sided, of
this very effect. Adjusted p is the claim's over the paper's testable claims but its primary one, by Benjamini and
Hochberg's method at 5 %; a claim of several effects has the largest p of them, or the smallest of the opposite times
their number. "Hold" is how many of its effects hold by themselves, and how many point the other way. Seeds are those
that all of an effect's numbers have; runs without a partner are left out and counted. "Seeds to go" is how many more
would find effects like ours with 80 % power in this test of this claim alone: 0 where there are enough, a dash where no
number would do, as ours points the other way, or where fewer than two seeds say nothing.

**Same direction**: adjusted p < 0.05, with the paper's sign; of a claim that two numbers are equal, the 95 % interval
lies within the margin, and of one that a number is no worse, above it. **Opposite direction**: the same with the other
sign, or beyond the margin. **Unresolved**: the rest. **Not testable here**: for a reason that does not depend on the
effect, told below the table. A paper's **primary** claim was named on the date that stands with it and is tested by
itself at 5 %, or at the level of its plan's look; a second one only after it. With fewer than five seeds of one of its
effects a claim is not judged. No verdict here is on the size of an effect, but at the paper's own scale: there a claim
is **reproduced**, *smaller* if its interval ends below half the paper's effect, **contradicted** if it is not above
zero and significantly below that half, else **undecided**.

Among the verdicts "same direction" about one in fifty may be wrong; and of 100 papers with 28 claims 9 to 25 hold some
false verdict."""


def render_claims_csv(claims: Iterable[JudgedClaim]) -> str:
    """A line for each claim at each scale."""
    lines = ({name: read(judged) for name, read in CSV_COLUMNS.items()} for judged in claims)
    return render_records(tuple(CSV_COLUMNS), lines, digits=6)


def render_claims_page(paper: PaperClaims, claims: Sequence[JudgedClaim]) -> str:
    """One paper's claims at every scale, and what it says of numbers that nothing here can judge."""
    blocks = [f"# What {paper.title} claims, and what our runs say of it"]
    for scale in dict.fromkeys(judged.scale for judged in claims):
        of_scale = [judged for judged in claims if judged.scale == scale]
        reasons = (f"{judged.claim.statement} {' '.join(judged.reasons)}" for judged in of_scale if judged.reasons)
        counts = Counter(judged.verdict for judged in of_scale)
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "."
        lines = [list(format_claim(judged).values()) for judged in of_scale]
        table = pad(list(HEADINGS.values()), lines, right=[False] * 3 + [True] * 7)
        blocks += [f"## Profile {scale}", told, table, *section("### Not testable", reasons)]
    if not claims:
        blocks.append("No run yet fills a place that a claim names.")
    not_judged = (f"{claim.section}: {claim.statement} {claim.reason}" for claim in paper.not_judged)
    return "\n\n".join([*blocks, LEGEND, *section("## Not judged", not_judged)]) + "\n"


def format_claim(judged: JudgedClaim) -> dict[str, str]:
    """The texts of a judged claim, in the order of ``HEADINGS``."""
    paper, needed, left_out = judged.shown.paper, judged.seeds_needed, judged.shown.estimate.num_unmatched
    adjusted = NOTHING if judged.adjusted is None else f"{judged.adjusted:.2g} over {judged.num_tests}"
    opposite = f", {judged.num_opposite} opposite" if judged.num_opposite else ""
    hold = f"{judged.num_hold} of {len(judged.effects)}{opposite}"
    return {
        "claim": judged.claim.statement,
        "section": judged.claim.section,
        "verdict": judged.verdict,
        "effect": format_effect(judged),
        "paper": NOTHING if paper is None else format_signed(paper, 1) if abs(paper) >= 1 else f"{paper:+.2g}",
        "p": NOTHING if judged.p is None else f"{judged.p:.2g}",
        "adjusted": f"primary, {judged.claim.primary}" if judged.claim.primary else adjusted,
        "hold": NOTHING if judged.shown.estimate.mean is None else hold,
        "n": f"{judged.shown.num_seeds}{f', {left_out} unmatched' if left_out else ''}",
        "seeds": NOTHING if needed is None else str(needed),
    }


def find_answer(suite: Suite, claims: Sequence[JudgedClaim]) -> JudgedClaim | None:
    """The claim that answers a suite's question: the first one about its headline's difference, else about it alone."""
    places = [(suite.name, place, None) for place in (suite.headline.better, suite.headline.baseline)]
    asked = [
        judged
        for judged in claims
        for effect in judged.claim.effects
        if [(term.suite, term.place, term.logged) for term in effect.terms] == places
    ]
    return next(iter([*asked, *(judged for judged in claims if judged.claim.suites == (suite.name,))]), None)


def answer(judged: JudgedClaim) -> str:
    """The answer to a question in words, such as "Yes, at laptop scale."."""
    word = ANSWERS.get(judged.verdict, judged.verdict.capitalize())
    scale = "the paper's" if judged.scale == "paper" else judged.scale
    return f"{word} at {scale} scale."


def format_effect(judged: JudgedClaim) -> str:
    """``+2.0 ± 1.9``, with its unit where that is not points."""
    estimate = judged.shown.estimate
    if estimate.mean is None:
        return NOTHING
    unit = "" if judged.unit == "points" else f" {judged.unit}"
    if estimate.interval is None:
        return format_signed(estimate.mean, 2) + unit
    decimals = significant_decimals(estimate.interval.half_width)
    return f"{format_signed(estimate.mean, decimals)} ± {estimate.interval.half_width:.{decimals}f}{unit}"


def summarize_claims(claims: Sequence[JudgedClaim]) -> list[str]:
    """A line a claim for the terminal; those that only lack seeds are counted in one."""
    lines = [f"{judged}: {judged.claim.statement} {format_effect(judged)}" for judged in claims if judged.num_tests]
    if few := sum(judged.verdict == "too few seeds" for judged in claims):
        claims_of = f"{few} claim{'s' if few > 1 else ''} of the paper"
        lines.append(f"{claims_of}: too few seeds; five of each configuration are judged")
    return lines
