"""The only place that prints while work is going on."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from convexkernels.solution import Record

__all__ = ["Silent", "Table", "as_progress"]


class Silent:
    """Progress that says nothing."""

    def start(self, title: str) -> None:
        """Announce a run."""

    def note(self, message: str) -> None:
        """Say one sentence, for example that code is being compiled."""

    def record(self, record: Record) -> None:
        """Show one line of history."""

    def finish(self, message: str) -> None:
        """Say how the run ended."""


class Table(Silent):
    """Progress as a table: iteration, upper, lower, relative gap, time.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard error by default, so that output can still be piped.
    every : float
        Least number of seconds between two lines (the first and last are always shown).
    """

    def __init__(self, stream: TextIO | None = None, every: float = 0.0) -> None:
        self.stream = stream
        self.every = every
        self._last = -float("inf")
        self._pending: Record | None = None

    def _write(self, text: str) -> None:
        print(text, file=self.stream or sys.stderr, flush=True)

    def start(self, title: str) -> None:
        self._last, self._pending = -float("inf"), None
        self._write(title)
        self._write(f"{'iter':>6} {'upper':>16} {'lower':>16} {'rel. gap':>10} {'time':>9}")

    def note(self, message: str) -> None:
        self._write(message)

    def record(self, record: Record) -> None:
        if time.monotonic() - self._last < self.every:
            self._pending = record
            return
        self._show(record)

    def _show(self, record: Record) -> None:
        self._last, self._pending = time.monotonic(), None
        self._write(
            f"{record.iteration:>6d} {record.upper:>16.9g} {record.lower:>16.9g} "
            f"{record.relative_gap:>10.2e} {record.seconds:>8.2f}s"
        )

    def finish(self, message: str) -> None:
        if self._pending is not None:
            self._show(self._pending)
        self._write(message)


def as_progress(progress: bool | Silent) -> Silent:
    """Turn the `progress` argument of a public function into a progress object."""
    if isinstance(progress, Silent):
        return progress
    return Table() if progress else Silent()
