"""A custom model, as data: one that is none of ours, or one of ours with other options, beside the papers'.

What tells one custom model from another is said here alone: ``ModelSource.identity`` for runs, ``digest`` for the
models that were entered into a suite's tables. A name is only the label of its columns on a board.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from suite.base.errors import SpecError
from suite.base.frozen import Frozen, Scalar
from suite.spec.model_options import defaults_in, without_defaults

OF_CUSTOM = "custom-"
NAME = r"[A-Za-z][A-Za-z0-9_]*"  # of a custom model, as columns are called by it


class ModelSource(Frozen):
    """Where a model comes from that is none of ours, and in which version.

    ``name`` is timm's; ``MODULE:ATTRIBUTE``; an entry point's; or, of kind "file", an attribute of ``code``, which is
    the file's whole text: whoever has the experiment, on whatever node or later, builds exactly that model.
    ``version`` is a distribution's, as ``timm==1.0.31``, or ``sha256:`` with the hash of the source.
    """

    kind: Literal["timm", "file", "module", "entry_point"]
    name: str
    version: str
    code: str = ""

    @model_validator(mode="after")
    def _check_code(self) -> Self:
        if self.kind == "file" and self.version != (found := hash_source(self.code.encode())):
            raise SpecError(f"the code of model {self.name} was changed: found {found}, expected {self.version}")
        return self

    @property
    def identity(self) -> dict[str, str]:
        """The part of an experiment's identity that says which model it is; the version stands for the code."""
        return {"kind": self.kind, "name": self.name, "version": self.version}

    @property
    def folder_name(self) -> str:
        """The beginning of its runs' folders; the hyphen marks them, as no name has one."""
        return f"{OF_CUSTOM}{re.sub(r'[^A-Za-z0-9_]+', '_', self.name)}"

    def changed_options(self, options: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Leave out what a file's text sets by default: a configuration is one in whichever way it is written."""
        return without_defaults(options, defaults_in(self.code, self.name))

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}@{self.version}"


def hash_source(source: bytes) -> str:
    """The version of a source that has no number."""
    return f"sha256:{hashlib.sha256(source).hexdigest()}"


class CustomModel(Frozen):
    """A model beside the papers', as a user entered it.

    ``words`` name the model as the user did; ``source`` is None for one of ours. ``recipe`` holds the fields in which
    it is trained otherwise than the suite says. ``boards``, as SUITE/PROFILE, are
    those that it was entered on. Older records name ``suites`` instead, or none of both: all.
    """

    name: str = Field(pattern=f"^{NAME}$")
    words: str
    source: ModelSource | None = None
    options: dict[str, Scalar] = Field(default_factory=dict)
    recipe: dict[str, Scalar] = Field(default_factory=dict)
    suites: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Sixteen digits that tell what is trained, from wherever it was read and whatever it is called."""
        model = self.source.identity if self.source else self.words
        options = self.source.changed_options(self.options) if self.source else self.options
        return hash_source(json.dumps([model, options, self.recipe], sort_keys=True).encode())[7:23]

    def joined_with(self, other: CustomModel) -> CustomModel:
        """The same model, entered on the boards of both."""
        if not all(one.suites or one.boards for one in (self, other)):
            return self.model_copy(suites=(), boards=())
        return self.model_copy(
            suites=sorted({*self.suites, *other.suites}), boards=sorted({*self.boards, *other.boards})
        )

    def is_on(self, suite: str, profile_name: str) -> bool:
        """Whether it was entered on a board, as far as its record tells."""
        is_known = self.suites or self.boards
        return not is_known or suite in self.suites or f"{suite}/{profile_name}" in self.boards

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
        values = (self.options | changed).items()
        given = (f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values)
        return [f"{self.name}={self.words}", *given]
