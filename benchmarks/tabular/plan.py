"""The frozen list of tables with their sizes, and the cells that are still to be run, in the order of their run."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tabular import sizes
from benchmarks.tabular.catalog import QUICK, TABLES, Entry
from benchmarks.tabular.methods import METHODS, Method
from benchmarks.tabular.rows import known
from benchmarks.tabular.tables import Table, load

LIST = Path(__file__).parent / "tables.csv"
RESULTS = Path(__file__).parent.parent / "results" / "tabular"
# Rows of cells that passed their limit, with more time.
LONGER = "longer"
FIELDS = [
    *("table", "source", "task", "shaped", "rows", "features", "categorical", "missing", "duplicates", "classes"),
    *("expanded", "published", "n_splits", "training_rows", "budget"),
]
QUICK_ROWS, QUICK_BUDGET = 200, 2.0


@dataclass(frozen=True)
class Size:
    """What is run of a table: training rows, splits, and the processor seconds of a tuned column."""

    training_rows: int
    splits: int
    budget: float


@dataclass(frozen=True)
class Cell:
    """A method on a split of a table."""

    entry: Entry
    split: int
    method: Method
    size: Size
    guess: float
    longer: float | None = None

    @property
    def limit(self) -> float:
        """Seconds of the fit: those of the method, or more."""
        return self.method.limit if self.longer is None else self.longer

    @property
    def key(self) -> tuple[str, int, str]:
        return self.entry.name, self.split, self.method.name

    @property
    def stage(self) -> int:
        return self.method.stage + 2 * int(self.entry.shaped)


def described(table: Table) -> dict[str, Any]:
    """What the report and the size rule have to know of a table."""
    text = table.X[table.categorical]
    distinct = [int(text[name].nunique()) for name in text]
    gaps = table.X.isna()
    return {
        "table": table.entry.name,
        "source": table.entry.source,
        "task": table.entry.task,
        "shaped": int(table.entry.shaped),
        "rows": len(table.X),
        "features": table.X.shape[1],
        "categorical": len(distinct),
        "missing": round(float(gaps.to_numpy().mean()), 4),
        "duplicates": round(float(table.X.duplicated().mean()), 4),
        "classes": len(np.unique(table.y)) if table.entry.task == "classification" else 0,
        "expanded": table.X.shape[1] - len(distinct) + sum(distinct) + int(gaps.any().sum()),
        "published": int(table.marks is not None),
        "n_splits": table.n_splits,
    }


def facts(row: dict[str, Any]) -> sizes.Facts:
    """The part of a row of the list that the size rule reads."""
    numbers = [int(row[name]) for name in ("rows", "expanded", "classes")]
    return sizes.Facts(row["task"], *numbers, bool(int(row["published"])))


def freeze(data: Path) -> list[dict[str, Any]]:
    """Write the list: every table of the catalog with its facts and sizes."""
    rows = [described(load(entry, data)) for entry in TABLES.values()]
    cut = sizes.training_rows([facts(row) for row in rows])
    for row in rows:
        row["training_rows"] = min(cut, facts(row).most_rows)
        row["budget"] = sizes.budget(facts(row), row["training_rows"])
    with LIST.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return rows


def frozen() -> dict[str, dict[str, str]]:
    """Table -> its row of the list."""
    with LIST.open() as stream:
        return {row["table"]: row for row in csv.DictReader(stream)}


def cells(
    tables: list[str] | None, methods: list[str] | None, quick: bool, splits: int = sizes.FIRST_SPLITS
) -> list[Cell]:
    """All cells of the first splits, of the quick size three small tables: split by split, what says most first.

    That are the first stages, tables that shaped no choice two stages before the others; within a stage cheap tables.
    """
    if quick:
        listed = [(entry, Size(QUICK_ROWS, 1, QUICK_BUDGET), None) for entry in QUICK.values()]
    else:
        listed = []
        for name, row in frozen().items():
            size = Size(int(row["training_rows"]), min(splits, int(row["n_splits"])), float(row["budget"]))
            listed.append((TABLES[name], size, facts(row)))
        listed.sort(key=lambda one: one[1].training_rows * one[2].features ** 0.5)
    wanted = METHODS if methods is None else {name: METHODS[name] for name in methods}
    found = []
    for entry, size, known_facts in listed:
        if tables is None or entry.name in tables:
            for method in wanted.values():
                if entry.task in method.tasks:
                    guess = sizes.seconds(method, known_facts, size.training_rows) if known_facts else 2.0
                    found += [Cell(entry, split, method, size, guess) for split in range(size.splits)]
    place = {entry.name: k for k, (entry, _, _) in enumerate(listed)}
    return sorted(found, key=lambda one: (one.split, one.stage, place[one.entry.name]))


def results(folder: Path) -> list[dict[str, str]]:
    """All rows of a folder of results."""
    return [row for path in sorted(folder.glob("*.csv")) for row in known(path)]


def key(row: dict[str, str]) -> tuple[str, int, str]:
    """The key of the cell of a row."""
    return row["table"], int(row["split"]), row["method"]


def done(folder: Path) -> set[tuple[str, int, str]]:
    """The keys of cells that have a row."""
    return {key(row) for row in results(folder)}
