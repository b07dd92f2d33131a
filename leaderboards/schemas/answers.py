"""The answers of ``grid.py --json``, a form for each of the options that only look; the launchers fill them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from suite.store.run_status import State

ANSWER_FORMAT = 1  # of all answers together

Unit = Literal["GPU", "core"]
JobState = Literal[State, "requeued", "pending", "cancelled"]
MaybeAmount = NonNegativeFloat | None


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Answer(_Form):
    format_version: int = ANSWER_FORMAT


class PlannedSize(_Form):
    runs: NonNegativeInt = Field(description="of one seed")
    hours: NonNegativeFloat = Field(description="at the rate that the profile states")
    unit: Unit = Field(description="what the hours are of")


class ListedSuite(_Form):
    name: str
    paper: str
    item: str = Field(description="the paper's table or figure")
    question: str
    profiles: dict[str, PlannedSize]


class SuiteList(Answer):
    """``--list``: every suite, and what it costs at each scale."""

    suites: list[ListedSuite]
    plugins: dict[str, list[str]] = Field(description="installed plug-ins by kind")


class RunOfPlan(_Form):
    id: str
    name: str = Field(description="short, as tables show it")
    folder: str = Field(description="its files, whether they are there or not")
    dataset: str
    state: State
    reason: str = Field(description="why it failed, waits or cannot start; or empty")
    images: NonNegativeFloat = Field(description="training images seen, with repetitions")
    flops: NonNegativeFloat
    hours: NonNegativeFloat


class Plan(Answer):
    """``--dry-run``: what would be trained, and its cost."""

    suite: str
    profile: str
    runs: list[RunOfPlan]
    unit: Unit
    hours_needed: NonNegativeFloat = Field(description="of all runs that are not done")
    devices: PositiveInt = Field(description="cores or GPUs that work at once")


class Costs(_Form):
    unit: Literal["GPU", "rank"] = Field(description="what the hours are of")
    hours_used: NonNegativeFloat
    hours_needed: NonNegativeFloat
    kwh_used: MaybeAmount = Field(description="of the runs that recorded it; null: unknown")
    kwh_needed: MaybeAmount = Field(description="at their mean power; null: unknown")
    runs_begun: NonNegativeInt
    runs_of_known_energy: NonNegativeInt
    peak_memory_gb: MaybeAmount = Field(description="the most of any run; null: unknown")


class RunState(_Form):
    id: str
    name: str
    folder: str
    state: JobState
    detail: str = Field(description="why it waits, failed or stalled; or empty")
    node: str
    step: NonNegativeInt | None
    num_steps: NonNegativeInt | None
    images_per_s: MaybeAmount = Field(description="of the last steps; null unless it keeps that pace")
    remaining_s: MaybeAmount
    top1_percent: float | None
    num_requeues: NonNegativeInt
    hours_used: NonNegativeFloat
    energy_kwh: MaybeAmount
    peak_memory_gb: MaybeAmount


class Status(Answer):
    """``--status``: where every run stands."""

    suite: str
    profile: str
    is_over: bool = Field(description="no run is in anybody's hands, so that nothing will change by itself")
    runs: list[RunState]
    costs: Costs
    troubles: list[str] = Field(description="bad or slow nodes")


class ShownRun(_Form):
    id: str
    name: str
    experiment: dict[str, Any] = Field(description="every field, the recipe's too")
    paper: dict[str, Any] | None = Field(description="the paper's experiment in the same place; null: there is none")


class Shown(Answer):
    """``--show``: a profile in full, beside the paper's."""

    suite: str
    profile: str
    runs: list[ShownRun]


class CheckFinding(_Form):
    experiment: str
    question: str
    problem: str = Field(description="or empty, where the answer is yes")
    cure: str


class ModelCost(_Form):
    model: str
    pixels: PositiveInt
    classes: PositiveInt
    parameters: NonNegativeInt
    flops: NonNegativeInt = Field(description="of one image's forward pass")
    bytes_of_model: NonNegativeInt = Field(description="weights, gradients and AdamW's moments in fp32")
    batch: PositiveInt
    bytes_with_batch: NonNegativeInt


class Checked(Answer):
    """``--check``: whether a model of one's own can be trained, and its cost beside the papers' models."""

    suite: str
    profile: str
    model: str
    is_sound: bool
    findings: list[CheckFinding]
    costs: list[ModelCost] = Field(description="empty where it is not sound")


ANSWERS: dict[str, type[Answer]] = {
    "list": SuiteList,
    "dry_run": Plan,
    "status": Status,
    "show": Shown,
    "check": Checked,
}
