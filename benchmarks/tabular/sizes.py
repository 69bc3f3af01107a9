"""The size rule: how many rows tables may train on, so that all of it fits a number of processor hours.

A method's seconds are guessed by ``a + b (rows / 1000)^p (features / 10)^q (classes / 2)^r``, the features counted with
an indicator per category, at most the limit of a fit; a tuned column costs its budget. Rows are cut to the largest
number of the ladder with which the first split of all tables and of all methods but the slow ones fits the hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.tabular.methods import METHODS, Method

HOURS = 4.5
LADDER = (250, 350, 500, 700, 1000, 1400, 2000, 2800, 4000, 5600, 8000)
FIRST_SPLITS = 1
# Seconds of a tuned column: two fits of CatBoost and what a network of 1,000 rows takes to begin, between these.
LEAST_BUDGET, MOST_BUDGET = 4.0, 10.0


@dataclass(frozen=True)
class Facts:
    """What the size of a problem depends on."""

    task: str
    rows: int
    features: int
    classes: int
    published: bool

    @property
    def most_rows(self) -> int:
        """Training rows of a split without a cut."""
        return int(self.rows * (0.9 if self.published else 2.0 / 3.0))


def seconds(method: Method, facts: Facts, rows: int) -> float:
    """Guessed processor seconds of one cell, its prediction included."""
    if method.tuned:
        return 1.3 * budget(facts, rows)
    start, factor, by_rows, by_features, by_classes = method.cost
    features = max(facts.features, 2) / 10.0
    classes = max(facts.classes, 2) / 2.0
    return min(method.limit, start + factor * (rows / 1000.0) ** by_rows * features**by_features * classes**by_classes)


def budget(facts: Facts, rows: int) -> float:
    """Processor seconds of every tuned column of a table."""
    guessed = 2.0 * seconds(METHODS["CatBoost"], facts, rows) + 3.0 * rows / 1000.0
    return round(min(max(guessed, LEAST_BUDGET), MOST_BUDGET), 1)


def total(facts: Facts, rows: int, methods: Iterable[Method] = METHODS.values()) -> float:
    """Guessed processor seconds of all methods but the slow ones on one split."""
    return sum(seconds(method, facts, rows) for method in methods if facts.task in method.tasks and not method.slow)


def whole(listed: Sequence[Facts], rows: int) -> float:
    """Guessed processor seconds of the first splits of all tables with at most so many training rows."""
    return sum(FIRST_SPLITS * total(facts, min(rows, facts.most_rows)) for facts in listed)


def training_rows(listed: Sequence[Facts]) -> int:
    """The cut: the most rows of the ladder that fit the hours."""
    return max(rows for rows in LADDER if rows == LADDER[0] or whole(listed, rows) <= 3600.0 * HOURS)
