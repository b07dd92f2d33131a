"""A page of the live server: made anew by a thread of its own while somebody looks, and by none while nobody does."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from suite.base.errors import SuiteError

_SHARE = 0.2  # of a core at most, whatever it costs to make a page once


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
    """The latest state of one page, however many look at it. ``trouble`` says why it cannot be made anew, if so.

    Args:
        make: function that makes the page anew; None leaves it as it is.
        every_s: seconds between two makings, at least.
        timeout_s: seconds that the first request waits for the page.
        share: share of a core that it may take.
        also: another page that is wanted by who wants this.
    """

    def __init__(
        self,
        make: Callable[[], ServedPage | None],
        every_s: float,
        timeout_s: float = 5.0,
        share: float = _SHARE,
        also: CachedPage | None = None,
    ) -> None:
        self._make, self._every_s, self._timeout_s, self._share, self._also = make, every_s, timeout_s, share, also
        self._latest: ServedPage | None = None
        self.trouble = ""
        self._wanted = threading.Event()
        self._changed = threading.Condition()
        threading.Thread(target=self._work, daemon=True).start()

    def find(self) -> ServedPage | None:
        """Say that somebody looks, and give the latest page; None where none could be made so soon."""
        self._want()
        with self._changed:
            self._changed.wait_for(lambda: self._latest is not None or self.trouble, self._timeout_s)
            return self._latest

    def _want(self) -> None:
        self._wanted.set()
        if self._also is not None:
            self._also._want()

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            began = time.monotonic()
            page, trouble = None, ""
            try:
                page = self._make()
            except (SuiteError, OSError) as error:  # the store is not there yet, or a record in it is broken
                trouble = f"it cannot be made: {error}"
            with self._changed:
                self._latest, self.trouble = page or self._latest, trouble
                self._changed.notify_all()
            time.sleep(max(self._every_s, (time.monotonic() - began) / self._share))
