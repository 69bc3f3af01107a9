"""Reading a CSV file into a numeric table and a target, or refusing it by row and column."""

from __future__ import annotations

import csv
import gzip
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError

__all__ = ["load_table"]

# How files say "not known"; compared without blanks and in lower case.
MISSING = frozenset({"", "?", "-", "na", "n/a", "nan", "null", "none"})
DELIMITERS = ",;\t"
GZIP_MAGIC = b"\x1f\x8b"


def load_table(
    path: str | os.PathLike[str], target: str, *, drop: Sequence[str] = ()
) -> tuple[Array, NDArray[Any], list[str]]:
    """Read a CSV file with a header line into features and a target.

    Parameters
    ----------
    path : path-like
        A text file in UTF-8, or one compressed by gzip. Values are separated by commas,
        semicolons or tabs, whichever the header uses.
    target : str
        Name of the column to predict. Its values may be text.
    drop : sequence of str
        Columns that are neither features nor the target.

    Returns
    -------
    X : ndarray of shape (rows, features), float64
    y : ndarray of shape (rows,)
        Integers or floats where every value is one, else text.
    feature_names : list of str

    Raises
    ------
    InvalidInputError
        When there is no such file or it is not a table with a header; when `target` or `drop`
        names no column; when a feature column holds text (named, with the remedy); when a value
        is missing or infinite (named by row and column). Rows count from 1 below the header.
    """
    path = Path(path)
    with _open_text(path) as lines:
        rows = _rows(path, lines)
        header = _checked_header(path, next(rows, (0, []))[1])
        target_at, features_at = _select_columns(path, header, target, drop)
        reading = _Reading([header[j] for j in features_at])
        labels: list[str] = []
        for line, row in rows:
            if len(row) != len(header):
                raise InvalidInputError(
                    f"{path} has {len(row)} values in line {line}, but the header names {len(header)} columns."
                )
            labels.append(row[target_at].strip())
            reading.add(line, [row[j] for j in features_at])
    if not labels:
        raise InvalidInputError(f"{path} has a header but no rows; at least one row is needed.")
    return reading.table(path), _as_target(path, target, labels), reading.names


class _Reading:
    """Feature values read so far: numbers, NaN where there is none, and what stood there."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.numbers = array("d")
        self.lines = array("q")
        self.text: dict[str, list[str]] = {}

    def add(self, line: int, cells: list[str]) -> None:
        self.lines.append(line)
        try:
            # float() reads 1_000 as a number; in a file that is text.
            self.numbers.extend([float(c) if "_" not in c else float("x") for c in cells])
        except ValueError:
            self.numbers.extend([self._number(name, c.strip()) for name, c in zip(self.names, cells, strict=True)])

    def _number(self, name: str, cell: str) -> float:
        try:
            if "_" not in cell:
                return float(cell)
        except ValueError:
            pass
        if cell.lower() not in MISSING:
            examples = self.text.setdefault(name, [])
            if cell not in examples and len(examples) < 3:
                examples.append(cell)
        return float("nan")

    def table(self, path: Path) -> Array:
        if self.text:
            found = "; ".join(f"{name!r} (for example {', '.join(map(repr, v))})" for name, v in self.text.items())
            raise InvalidInputError(
                f"{path} has text in the feature column{'s' if len(self.text) > 1 else ''} {found}. Encode "
                "categories as numbers first, for example with sklearn.preprocessing.OneHotEncoder, or leave "
                f"such columns out: drop={list(self.text)} (on the command line: "
                f"{' '.join(f'--drop {name!r}' for name in self.text)})."
            )
        X = np.array(self.numbers, dtype=np.float64).reshape(len(self.lines), len(self.names))
        bad = np.argwhere(~np.isfinite(X))
        if bad.size:
            row, column = bad[0]
            kind = "missing" if np.isnan(X[row, column]) else "infinite"
            more = f", and {len(bad) - 1} more like it" if len(bad) > 1 else ""
            raise InvalidInputError(
                f"{path} has a {kind} value in row {row + 1} (line {self.lines[row]}), column "
                f"{self.names[column]!r}{more}. Fill such values in (for example with "
                "sklearn.impute.SimpleImputer), remove those rows, or drop the column."
            )
        return X


def _open_text(path: Path) -> TextIO:
    if not path.exists():
        raise InvalidInputError(f"There is no file {str(path)!r}; check the name and the folder.")
    if not path.is_file():
        raise InvalidInputError(f"{str(path)!r} is not a file; pass a CSV file with a header line.")
    with path.open("rb") as start:
        compressed = start.read(2) == GZIP_MAGIC
    if compressed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _rows(path: Path, lines: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Non-blank rows with their line numbers; the first one decides the delimiter."""
    try:
        header = lines.readline()
        delimiter = max(DELIMITERS, key=header.count)
        yield 1, next(csv.reader([header], delimiter=delimiter), [])
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num + 1, row
    except (UnicodeDecodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
        raise InvalidInputError(
            f"{path} cannot be read as a table ({error}); it must be a CSV file in UTF-8, plain or gzip."
        ) from error


def _checked_header(path: Path, header: list[str]) -> list[str]:
    names = [name.strip() or f"column {j}" for j, name in enumerate(header, start=1)]
    if not header or not any(name.strip() for name in header):
        raise InvalidInputError(f"{path} has no header; its first line must name the columns.")
    if all(_is_number(name) for name in names):
        raise InvalidInputError(
            f"{path} starts with the numbers {', '.join(names[:3])}...; its first line must name the columns."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"{path} names more than one column {', '.join(map(repr, twice))}; rename them.")
    return names


def _select_columns(path: Path, header: list[str], target: str, drop: Sequence[str]) -> tuple[int, list[int]]:
    drop = [drop] if isinstance(drop, str) else list(drop)
    for role, name in [("target", target), *(("drop", name) for name in drop)]:
        if name not in header:
            raise InvalidInputError(
                f"{role} {name!r} is not a column of {path}; its columns are {', '.join(map(repr, header))}."
            )
    if target in drop:
        raise InvalidInputError(f"{target!r} is both the target and dropped; it cannot be both.")
    features_at = [j for j, name in enumerate(header) if name != target and name not in drop]
    if not features_at:
        raise InvalidInputError(f"{path} has no feature left beside the target {target!r}; at least one is needed.")
    return header.index(target), features_at


def _as_target(path: Path, name: str, labels: list[str]) -> NDArray[Any]:
    """Integers if every label is one, else floats if every label is one, else text."""
    missing = [i for i, label in enumerate(labels) if label.lower() in MISSING]
    if missing:
        raise InvalidInputError(
            f"{path} has no target value ({name!r}) in row {missing[0] + 1}"
            + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
            + "; remove such rows before learning."
        )
    for kind in (int, float):
        try:
            values = np.array([kind(label) for label in labels])
        except (ValueError, OverflowError):
            continue
        if values.dtype.kind in "if" and np.isfinite(values).all() and not any("_" in label for label in labels):
            return values
    return np.array(labels)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
