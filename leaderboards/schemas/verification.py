"""The report of ``verify``: what was checked in packed records, and what became of the runs that were trained again."""

from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt

from suite.base.frozen import Frozen

VERIFICATION_FORMAT = 1

Outcome = Literal["equal bits", "equal numbers", "within tolerance", "differs", "not trained"]
PASSED: tuple[Outcome, ...] = ("equal bits", "equal numbers", "within tolerance")


class CheckedPart(Frozen):
    part: str
    num_checked: NonNegativeInt
    problems: tuple[str, ...] = Field(description="each with the run that has it; empty: all is as it should be")


class Recomputed(Frozen):
    run: str
    code: str = Field(description="the commit by which it was trained again; 'today': this checkout's code; or empty")
    device: tuple[str, str] = Field(description="in the records, and here")
    torch: tuple[str, str] = Field(description="in the records, and here")
    top1_percent: tuple[float, float | None] = Field(description="in the records, and here; null: not trained")
    outcome: Outcome
    reason: str = Field(description="why it differs or was not trained; or empty")
    seconds: NonNegativeFloat


class Odds(Frozen):
    num_altered: NonNegativeInt = Field(description="runs of the records that somebody has altered")
    probability: float = Field(description="that the sample holds at least one of them")


class Verification(Frozen):
    """``verify --report``: a pack of records, checked, and a sample of its runs trained again."""

    format_version: int = VERIFICATION_FORMAT
    records: str
    records_sha256: str
    entry: str = Field("", description="the entry whose records they are; or empty")
    num_runs: NonNegativeInt
    is_sound: bool = Field(description="no check has a problem, and no run of the sample differs or was not trained")
    checks: tuple[CheckedPart, ...]
    sample_seed: NonNegativeInt | None = Field(None, description="by which the sample was drawn; null: none was")
    tolerances: dict[str, float] = Field(description="how far the numbers of another kind of machine may be off")
    sample: tuple[Recomputed, ...] = ()
    odds: tuple[Odds, ...] = ()
