"""Judged claims -> ``claims.csv``, a Markdown page a paper, and lines for the terminal."""

from collections.abc import Iterable, Sequence

from leaderboards.judged_claims import JudgedClaim
from leaderboards.text.notation import NOTHING, format_signed, pad, section, significant_decimals
from leaderboards.text.records import format_numbers, render_records
from suite.spec.claims import PaperClaims

CSV_COLUMNS = (
    "claim", "paper", "scale", "verdict", "effect", "low", "high", "p", "n", "seeds_needed", "paper_effect", "unit",
    "relation", "section",
)  # fmt: skip
LEGEND = """\
Effect is ours with its 95 % confidence interval over training seeds, in points of accuracy unless a unit stands beside
it; of a claim of several effects it is the one that speaks least for it. Paper is the same effect in the paper's
numbers, a dash where it only draws. p is two-sided, where it shows an equality one-sided, by Holm's method over all of
the paper's claims, also those that a scale leaves out; n are the seeds of each configuration. "Seeds" is how many
more each configuration needs to find an effect like ours with 80 % power in a test at 5 % of this claim alone, without
Holm's adjustment: 0 where there are enough, a dash where no number would do, as ours points the other way, or where
fewer than two seeds say nothing.

**Reproduced**: the effect is above zero (p < 0.05); *smaller* if its interval ends below half the paper's.
**Contradicted**: it is not, and significantly below half the paper's. Else **undecided**. A claim of equality is
reproduced where the difference is significantly less than its margin, contradicted where it is significantly more.
A claim is judged from five seeds of each configuration on. At another scale than the paper's a verdict holds for that
scale."""


def render_claims_csv(claims: Iterable[JudgedClaim]) -> str:
    """A line for each claim at each scale."""
    return render_records(CSV_COLUMNS, map(_record, claims))


def _record(judged: JudgedClaim) -> dict[str, object]:
    estimate, needed = judged.shown.estimate, judged.seeds_needed
    numbers = {
        "effect": estimate.mean,
        "low": estimate.interval and estimate.interval.low,
        "high": estimate.interval and estimate.interval.high,
        "p": judged.p_value,
        "paper_effect": judged.shown.paper,
    }
    return {
        "claim": judged.claim.name,
        "paper": judged.paper.name,
        "scale": judged.scale,
        "verdict": judged.verdict,
        "n": format_num_seeds(judged),
        "seeds_needed": "" if needed is None else needed,
        "unit": judged.claim.unit,
        "relation": judged.claim.relation,
        "section": judged.claim.section,
        **format_numbers(numbers, digits=6),
    }


def render_claims_page(paper: PaperClaims, claims: Sequence[JudgedClaim]) -> str:
    """One paper's claims at every scale, and what it says of numbers that nothing here can judge."""
    blocks = [f"# What {paper.title} claims, and what our runs say of it"]
    for scale in dict.fromkeys(judged.scale for judged in claims):
        of_scale = [judged for judged in claims if judged.scale == scale]
        late = (_format_late(judged) for judged in of_scale if judged.late)
        blocks += [f"## Profile {scale}", _count(of_scale), _table(of_scale), *section("### Read later", late)]
    if not claims:
        blocks.append("No run yet fills a place that a claim names.")
    not_judged = (f"{claim.section}: {claim.statement} {claim.reason}" for claim in paper.not_judged)
    return "\n\n".join([*blocks, LEGEND, *section("## Not judged", not_judged)]) + "\n"


def _count(claims: Sequence[JudgedClaim]) -> str:
    verdicts = [judged.verdict for judged in claims]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)) + "."


def _format_late(judged: JudgedClaim) -> str:
    """``…: read after 20 % of the training, not 10 %``, as its runs are tested only so often."""
    read = " and ".join(f"{100 * late.read_at:.0f}" for late in judged.late)
    claimed = " and ".join(f"{100 * late.claimed_at:.0f}" for late in judged.late)
    return f"{judged.claim.statement} Read after {read} % of the training, not {claimed} %."


def _table(claims: Sequence[JudgedClaim]) -> str:
    texts = [format_claim(judged) for judged in claims]
    return pad(list(texts[0]), [list(line.values()) for line in texts], right=[False] * 3 + [True] * 5)


def format_claim(judged: JudgedClaim) -> dict[str, str]:
    """The texts of a judged claim by column."""
    paper, needed = judged.shown.paper, judged.seeds_needed
    return {
        "claim": judged.claim.statement,
        "section": judged.claim.section,
        "verdict": judged.verdict,
        "effect": format_effect(judged),
        "paper": NOTHING if paper is None else format_signed(paper, 1) if abs(paper) >= 1 else f"{paper:+.2g}",
        "p": NOTHING if judged.p_value is None else f"{judged.p_value:.2g}",
        "n": format_num_seeds(judged),
        "seeds": NOTHING if needed is None else str(needed),
    }


def format_effect(judged: JudgedClaim) -> str:
    """``+2.0 ± 1.9``, with its unit where that is not points."""
    estimate = judged.shown.estimate
    if estimate.mean is None:
        return NOTHING
    unit = "" if judged.claim.unit == "points" else f" {judged.claim.unit}"
    if estimate.interval is None:
        return format_signed(estimate.mean, 2) + unit
    decimals = significant_decimals(estimate.interval.half_width)
    return f"{format_signed(estimate.mean, decimals)} ± {estimate.interval.half_width:.{decimals}f}{unit}"


def format_num_seeds(judged: JudgedClaim) -> str:
    """``5``, or ``3 4`` where the configurations of an effect differ."""
    counts = judged.num_seeds
    return str(counts[0]) if len(set(counts)) == 1 else " ".join(map(str, counts))


def summarize_claims(claims: Sequence[JudgedClaim]) -> list[str]:
    """A line a claim for the terminal; those that only lack seeds are counted in one."""
    lines = [
        f"{judged}: {judged.claim.statement} {format_effect(judged)}" for judged in claims if judged.p_value is not None
    ]
    few = sum(judged.verdict == "too few seeds" for judged in claims)
    if few:
        claims_of = f"{few} claim{'s' if few > 1 else ''} of the paper"
        lines.append(f"{claims_of}: too few seeds; five of each configuration are judged")
    return lines
