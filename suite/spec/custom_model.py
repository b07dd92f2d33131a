"""A model beside the papers', as data: who enters a suite's tables, under which name, and in which version."""

from __future__ import annotations

from pydantic import Field

from suite.base.frozen import Frozen, Scalar
from suite.spec.experiment import ModelSource

NAME = r"[A-Za-z][A-Za-z0-9_]*"  # of a custom model, as columns are called by it


class CustomModel(Frozen):
    """One model beside the papers'.

    ``words`` name the model as the user did; ``source`` is None for one of ours. ``recipe`` holds the fields in which
    it is trained otherwise than the suite says. ``suites`` are those that it was entered into; none: every one.
    """

    name: str = Field(pattern=f"^{NAME}$")
    words: str
    source: ModelSource | None = None
    options: dict[str, Scalar] = Field(default_factory=dict)
    recipe: dict[str, Scalar] = Field(default_factory=dict)
    suites: tuple[str, ...] = ()

    def is_same_as(self, other: CustomModel) -> bool:
        """Whether both are the same model, trained alike, from wherever each user has read it."""
        fields = {"name", "options", "recipe"}
        return (
            self.model_dump(include=fields) == other.model_dump(include=fields)
            and (self.source or self.words) == (other.source or other.words)
        )  # fmt: skip

    def joined_with(self, other: CustomModel) -> CustomModel:
        """The same model, entered into the suites of both."""
        suites = {*self.suites, *other.suites} if self.suites and other.suites else ()
        return self.model_copy(update={"suites": tuple(sorted(suites))})

    def describe(self) -> str:
        """``mine: my_vit.py:MyViT (sha256:3fa9...), dim=192; recipe changed: learning_rate=0.001``."""
        version = f" ({self.source.version[:23]})" if self.source else ""
        options = "".join(f", {name}={value}" for name, value in self.options.items())
        changed = ", ".join(f"{name}={value}" for name, value in self.recipe.items())
        return f"{self.name}: {self.words}{version}{options}" + (f"; recipe changed: {changed}" if changed else "")

    @property
    def arguments(self) -> list[str]:
        """The words behind ``--challenger`` that enter it again."""
        changed = {f"recipe.{name}": value for name, value in self.recipe.items()}
        given = (f"{name}={_write(value)}" for name, value in (self.options | changed).items())
        return [f"{self.name}={self.words}", *given]


def _write(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
