"""Running what is missing: cells are forked from processes that hold a table, several of them side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Lock

import convexkernels as ck
from benchmarks.tabular import cell, plan
from benchmarks.tabular.methods import METHODS
from benchmarks.tabular.rows import append
from benchmarks.tabular.tables import load


@dataclass
class Progress:
    """Says after every cell how much is left, by the guesses of the size rule times what they were off so far."""

    left: float
    n_left: int
    jobs: int
    say: Callable[[str], None]
    guessed: float = 0.0
    spent: float = 0.0

    def after(self, one: plan.Cell, row: dict[str, object], wall: float) -> None:
        self.left, self.n_left = self.left - one.guess, self.n_left - 1
        self.guessed, self.spent = self.guessed + one.guess, self.spent + wall
        hours = self.left * self.spent / self.guessed / self.jobs / 3600.0
        score = row.get("rmse_std", row.get("accuracy"))
        shown = "" if score is None else f" {score:.4f}"
        self.say(
            f"{one.entry.name} {one.split} {one.method.name}:{shown} {row['status']}, {wall:.1f} s; "
            f"{self.n_left} cells left, about {hours:.2f} h"
        )


def run(
    todo: list[plan.Cell],
    data: Path | None,
    out: Path,
    jobs: int,
    say: Callable[[str], None],
    until: float = float("inf"),
) -> None:
    """Run cells, table by table; what an interrupt leaves undone is begun again by the next call.

    A method whose package is not installed has no row: it is said once, and run when the package is there. `until` is a
    moment of `time.monotonic` after which no cell is begun.
    """
    missing = {one.method.name: one.method.missing() for one in todo if one.method.missing()}
    for name, packages in missing.items():
        say(f"{name} is not run: {', '.join(packages)} is not installed")
    todo = [one for one in todo if one.method.name not in missing]
    if any(one.method.ours for one in todo):
        ck.warm_up()
    for name in {one.method.name for one in todo}:
        cell.prepare(METHODS[name])
    progress, lock = Progress(sum(one.guess for one in todo), len(todo), jobs, say), Lock()

    for (entry, _), group in groupby(todo, key=lambda one: (one.entry, one.split)):
        if time.monotonic() > until:
            break
        try:
            table = load(entry, data)
        except LookupError as reason:
            say(f"not run, {reason}")
            continue

        def measure(one: plan.Cell, table: object = table) -> None:
            if time.monotonic() > until:
                return
            began = time.monotonic()
            row = cell.run(one.method, table, one.split, one.size.training_rows, one.limit, one.size.budget)
            with lock:
                if row["status"] == cell.BUSY:
                    say(f"{one.key}: other work holds the machine; the next run begins it again")
                    return
                append(out / f"{one.entry.name}.csv", row, cell.FIELDS)
                progress.after(one, row, time.monotonic() - began)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(measure, group))
