"""Immutable data that is checked when it is made: the base of all that a suite defines."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

Scalar = bool | int | float | str


class Frozen(BaseModel):
    """Immutable data whose misspelt fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False, **changes: Any) -> Self:
        """A copy with other values, in ``update`` or by name, validated like new ones: pydantic's own would keep an int
        where a float belongs, which is another identity, and carry cached properties over."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **(update or {}), **changes})
