"""The one clock of long work: limit, progress with the time that is left, what a checkpoint knows of its pieces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.checkpoint import Checkpoint, Numbers, Piece
from convexkernels.progress import Silent, as_progress
from convexkernels.validation import check_number

# Seconds between two messages.
EVERY = 5.0


class Clock:
    """Seconds since the start, against a limit for the whole work; it starts when compiled code is ready.

    Work that another clock has begun (`since`) is still the same work. Without a `checkpoint` nothing is known of
    earlier runs, and nothing is kept.
    """

    def __init__(
        self,
        max_time: float | None = None,
        progress: bool | Silent = False,
        checkpoint: Checkpoint | None = None,
        since: Clock | None = None,
    ) -> None:
        # Loading a compiler takes longer than most of what uses clocks.
        from convexkernels.compiled import make_ready

        self.show = as_progress(progress)
        make_ready(self.show.note)
        self.began: float = time.monotonic() if since is None else since.began
        self.max_time = np.inf
        if max_time is not None:
            self.max_time = check_number("max_time", max_time, low=0.0, open_low=True, remedy="Pass None for no limit.")
        self.checkpoint = checkpoint
        self.interrupted = False
        # What the limit has ended before its own end; the same for all clocks of a piece of work.
        self.cuts: set[str] = set() if since is None else since.cuts
        self._spoke = self.began

    def interrupt(self) -> None:
        """Keep a keyboard interrupt in mind: from now on the time is up."""
        self.interrupted, self.max_time = True, 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    @property
    def deadline(self) -> float:
        """Value of ``time.monotonic()`` at which the work has to end; inf without a limit."""
        return self.began + self.max_time

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.seconds > self.max_time

    @property
    def left(self) -> float | None:
        """Seconds that are left, a moment at least; None without a limit."""
        return None if np.isinf(self.max_time) else max(self.max_time - self.seconds, 1e-3)

    def part(self, share: float) -> Clock:
        """A clock of its own for a part of the work, which may take this share of the time that is left."""
        part = Clock(None if self.left is None else share * self.left, self.show, self.checkpoint)
        part.cuts = self.cuts
        return part

    def sparing(self, seconds: float) -> Clock:
        """A clock that ends so many seconds earlier, when something else has to be done; half of the time at most.

        It counts from the same beginning.
        """
        left = self.left
        until = None if left is None else self.seconds + max(left - seconds, 0.5 * left)
        return Clock(until, self.show, self.checkpoint, since=self)

    def cut(self, what: str) -> None:
        """Keep in mind that the limit, if there is one, has ended something early, to be told once when all is done."""
        if np.isfinite(self.max_time):
            self.cuts.add(what)

    def done(self, share: float) -> float:
        """How much of the work is over, by its own count (`share`) or by time, whichever is more."""
        return min(max(share, self.seconds / max(self.max_time, 1e-9)), 1.0)

    def piece(self, *work: Any) -> Piece:
        """A piece of the work, known again by what states it."""
        return Piece(self.checkpoint, *work)

    def once(self, find: Callable[[], dict[str, Any]], *work: Any) -> Numbers:
        """What an earlier run has found by a piece of work, or what `find` does: kept, unless time has cut it."""
        piece = self.piece(*work)
        if known := piece.found:
            return known
        cuts = len(self.cuts)
        found: dict[str, Any] = {name: np.array(value) for name, value in find().items()}
        if not self.is_over and len(self.cuts) == cuts:
            piece.keep(**found)
        return found

    def tell(self, share: float, what: str, *, now: bool = False) -> None:
        """Say where the work is and when it will be over, every few seconds."""
        if not now and time.monotonic() - self._spoke < EVERY:
            return
        self._spoke = time.monotonic()
        done = self.done(share)
        left = self.seconds * (1.0 - done) / done if done > 0.0 else np.inf
        self.show.note(f"{100.0 * done:5.1f} %, {what}, {self.seconds:.0f} s so far, about {left:.0f} s left")
