"""One line of ``<profile>.long.csv``; ``text/csv_files.py`` fills it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

LONG_FORMAT = 3


class LongLine(BaseModel):
    """One place of a table: ours over all seeds, and the paper's number where there is one."""

    model_config = ConfigDict(extra="forbid")

    table: str = Field(description="the table's name, as in suite/papers/<paper>/printed_tables")
    row: str = Field(description="the values of the row's keys, joined by ' / '")
    column: str
    metric: str | None = Field(description="a number of result.json, or in a paper's unit; null where it is derived")
    n: NonNegativeInt = Field(description="seeds of the candidate that is shown")
    planned: PositiveInt = Field(description="seeds planned for it")
    mean: float | None
    sd: NonNegativeFloat | None = Field(description="standard deviation over seeds, n - 1")
    low: float | None = Field(description="of the 95 % interval over training seeds")
    high: float | None
    paper: float | None = Field(description="the printed number")
    difference: float | None = Field(description="mean - paper; null away from the paper's scale")
    baseline: str | None = Field(description="away from it: 'row: column' of the cell that this one is compared with")
    effect: float | None = Field(description="by how many points the mean exceeds the baseline's")
    effect_low: float | None = Field(description="of its 95 % interval")
    effect_high: float | None
    paper_effect: float | None = Field(description="the same in the paper's numbers")
    verdict: Literal["reproduced", "contradicted", "undecided"] | None
    p_value: float | None = Field(
        description="of the paper's number among seeds like ours, adjusted over the table", ge=0, le=1
    )
    best_rank: PositiveInt | None
    worst_rank: PositiveInt | None
    status: Literal["done", "partial", "failed", "void", "missing"]
    chosen: str | None = Field(description="of a search: the configurations that are shown, joined by spaces")
    device_hours: NonNegativeFloat | None = Field(description="of all attempts of all candidates")
    images_per_s: NonNegativeFloat | None
    num_evaluations: str | None = Field(description="during one run, all that occur, joined by spaces")
    last_top1_percent: float | None = Field(description="beside a best accuracy that of the last weights")
    commits: str | None = Field(description="versions of the code, joined by spaces")
