"""A page of the live server: made anew by a thread of its own while somebody looks, and by none while nobody does."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_SHARE = 0.2  # of a core at most, whatever it costs to make a page once


@dataclass(frozen=True)
class Page:
    """A content as it is sent. ``packed`` is the same compressed, ``mark`` changes with it."""

    content: bytes
    packed: bytes
    type: str
    mark: str

    @classmethod
    def of(cls, text: str, kind: str) -> Page:
        content = text.encode()
        mark = hashlib.sha256(content).hexdigest()[:32]
        return cls(content, gzip.compress(content, 3, mtime=0), f"{kind}; charset=utf-8", mark)


class KeptPage:
    """The latest state of one page, however many look at it.

    Args:
        make: makes the page anew; None leaves it as it is.
        every_s: seconds between two makings, at least.
    """

    def __init__(self, make: Callable[[], Page | None], every_s: float) -> None:
        self._make, self._every_s = make, every_s
        self._latest: Page | None = None
        self._wanted = threading.Event()
        self._changed = threading.Condition()
        threading.Thread(target=self._work, daemon=True).start()

    def want(self) -> None:
        """Say that somebody looks."""
        self._wanted.set()

    def find(self, patience_s: float = 60.0) -> Page | None:
        """The latest page; None where none could be made for so long."""
        self.want()
        with self._changed:
            self._changed.wait_for(lambda: self._latest is not None, patience_s)
            return self._latest

    def _work(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            began = time.monotonic()
            if (page := self._make()) is not None:
                with self._changed:
                    self._latest = page
                    self._changed.notify_all()
            time.sleep(max(self._every_s, (time.monotonic() - began) / _SHARE))
