"""The only place that prints while work is going on."""

import sys
import time
from math import log
from typing import TextIO

from convexkernels.solution import Record

# Seconds between two lines where nobody watches.
EVERY_IN_FILES = 5.0


class Silent:
    """Progress that says nothing; `tol` is the relative gap at which the present run ends, where it is known."""

    tol: float | None = None

    def start(self, title: str) -> None:
        """Announce a run."""

    def note(self, message: str) -> None:
        """Say one sentence, for example that code is being compiled."""

    def record(self, record: Record) -> None:
        """Show one line of history."""

    def finish(self, message: str) -> None:
        """Say how the run ended."""


class Table(Silent):
    """Progress as a table: iteration, upper, lower, relative gap, time, and about how much more time it takes.

    It goes to standard error by default, so that output can still be piped; `every` is the least number of seconds
    between two lines (the first and last are always shown).
    """

    def __init__(self, stream: TextIO | None = None, every: float = 0.0) -> None:
        self.stream = stream
        self.every = every
        self._last = -float("inf")
        self._pending: Record | None = None
        self._first: Record | None = None
        # Searches that are not convex have no lines of bounds, and no head of a table.
        self._has_head = False

    def _write(self, text: str) -> None:
        print(text, file=self.stream or sys.stderr, flush=True)

    def start(self, title: str) -> None:
        self._last, self._pending, self._first = -float("inf"), None, None
        self._has_head = False
        self._write(title)

    def note(self, message: str) -> None:
        self._write(message)

    def record(self, record: Record) -> None:
        if time.monotonic() - self._last < self.every:
            self._pending = record
            return
        self._show(record)

    def _show(self, record: Record) -> None:
        self._last, self._pending = time.monotonic(), None
        if not self._has_head:
            self._write(f"{'iter':>6} {'upper':>16} {'lower':>16} {'rel. gap':>10} {'time':>9} {'left':>8}")
            self._has_head = True
        self._write(
            f"{record.iteration:>6d} {record.upper:>16.9g} {record.lower:>16.9g} "
            f"{record.relative_gap:>10.2e} {record.seconds:>8.2f}s {self._left(record):>8}"
        )

    def _left(self, record: Record) -> str:
        """About how long it takes if the gap goes on to close as fast as it has closed so far."""
        if self._first is None and 0.0 < record.relative_gap < float("inf"):
            self._first = record
        if self._first is None or self.tol is None or not self.tol < record.relative_gap < self._first.relative_gap:
            return ""
        closed = log(self._first.relative_gap / record.relative_gap)
        open_ = log(record.relative_gap / self.tol)
        return f"~{(record.seconds - self._first.seconds) * open_ / closed:.1f}s"

    def finish(self, message: str) -> None:
        if self._pending is not None:
            self._show(self._pending)
        self._write(message)


class Line(Table):
    """The newest line of the table only, in the place of the one before: for notebooks."""

    _width = 0

    def _write(self, text: str) -> None:
        print(f"\r{text:<{self._width}}", end="", file=self.stream or sys.stdout, flush=True)
        self._width = max(self._width, len(text))

    def finish(self, message: str) -> None:
        super().finish(message)
        print(file=self.stream or sys.stdout, flush=True)


def as_progress(progress: bool | Silent) -> Silent:
    """Turn the `progress` argument of a public function into a progress object.

    True is a table on standard error, with a line every few seconds where that is a file; in notebooks it is one line.
    """
    if isinstance(progress, Silent):
        return progress
    if not progress:
        return Silent()
    if "ipykernel" in sys.modules:
        return Line()
    return Table(every=0.0 if sys.stderr.isatty() else EVERY_IN_FILES)
