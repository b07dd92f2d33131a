"""A page of the live server: made anew by who asks for it, and by nobody while nobody looks."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from suite.base.errors import SuiteError


@dataclass(frozen=True)
class ServedPage:
    """A content as it is sent. ``packed`` is the same compressed, ``mark`` changes with it; ``linked`` are the files
    that it links to, by their names."""

    content: bytes
    packed: bytes
    type: str
    mark: str
    linked: Mapping[str, ServedPage] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, kind: str, linked: Mapping[str, ServedPage] | None = None) -> ServedPage:
        content = text.encode()
        mark = hashlib.sha256(content).hexdigest()[:32]
        return cls(content, gzip.compress(content, 3, mtime=0), f"{kind}; charset=utf-8", mark, linked or {})


class CachedPage:
    """The latest state of one page, however many look at it. ``trouble`` says why it cannot be made anew, if so;
    ``due`` is when it is made anew for who asks.

    Args:
        make: function that makes the page anew; None leaves it as it is.
        every_s: seconds between two makings, at least.
        share: share of a core that it may take, whatever it costs to make the page once.
    """

    def __init__(self, make: Callable[[], ServedPage | None], every_s: float, share: float = 0.2) -> None:
        self._make, self._every_s, self._share = make, every_s, share
        self._lock = threading.Lock()
        self._latest: ServedPage | None = None
        self.due = 0.0
        self.trouble = ""

    def find(self) -> ServedPage | None:
        """The page, made anew where that is due; while another makes it, that of before. None: it cannot be made."""
        if self._lock.acquire(blocking=self._latest is None):
            try:
                if time.monotonic() >= self.due:
                    self._renew()
            finally:
                self._lock.release()
        return self._latest

    def _renew(self) -> None:
        began = time.monotonic()
        try:
            self._latest, self.trouble = self._make() or self._latest, ""
        except (SuiteError, OSError) as error:  # the store is not there yet, or a record in it is broken
            self.trouble = f"it cannot be made: {error}"
        now = time.monotonic()
        self.due = now + max(self._every_s, (now - began) / self._share)
