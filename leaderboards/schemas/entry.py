"""``entries/NAME/entry.toml``: what a leaderboard's entry says of itself, beside the records of its runs."""

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from suite.base.frozen import Frozen

ENTRY_FORMAT = 1


class EntryFile(Frozen):
    """Who has entered which runs, and who has checked or recomputed them.

    ``status`` is "reported" as it arrives, "checked" once ``verify`` has found its records sound, and "recomputed" once
    those that ``recomputed_by`` names have trained a sample of its runs again.
    """

    format_version: int = Field(ENTRY_FORMAT, ge=1)
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", description="that of its folder")
    who: str = Field(min_length=1, max_length=100)
    suite: str
    profile: str
    records_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of records.tar.xz beside it")
    status: Literal["reported", "checked", "recomputed"] = "reported"
    recomputed_by: tuple[str, ...] = ()
    withdrawn: bool = False

    @field_validator("format_version")
    @classmethod
    def _is_known(cls, found: int) -> int:
        if found > ENTRY_FORMAT:
            raise ValueError(
                f"it is of a newer version of the suite, expected at most {ENTRY_FORMAT}: update the suite"
            )
        return found

    @field_validator("who", "recomputed_by")
    @classmethod
    def _is_printable(cls, found: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if not "".join(found).isprintable():
            raise ValueError("expected a name without control characters")
        return found

    @model_validator(mode="after")
    def _names_who_recomputed(self) -> Self:
        if (self.status == "recomputed") != bool(self.recomputed_by):
            raise ValueError("expected status 'recomputed' and names in recomputed_by, or neither of them")
        return self
