"""Reading a CSV file into a numeric table and a target, or refusing it by row and column."""

from __future__ import annotations

import csv
import gzip
import os
import re
import sys
import unicodedata
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError

# How files say "not known"; compared without blanks and in lower case.
MISSING = frozenset({"", "?", "-", "na", "n/a", "nan", "null", "none"})
DELIMITERS = ",;\t"
GZIP_MAGIC = b"\x1f\x8b"
# Rows that are turned into columns at a time.
BLOCK = 4096
# A text column with more texts than this, all of them different, is no category.
MOST_DISTINCT = 20
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?$|\d{1,2}[./]\d{1,2}[./]\d{2,4}([ T].*)?$")
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


def load_table(
    path: str | os.PathLike[str], target: str, *, drop: Sequence[str] = (), category: Sequence[str] = ()
) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """Read a CSV file with a header line into features and a target.

    Parameters
    ----------
    path : path-like
        A text file in UTF-8 or Latin-1, or one compressed by gzip. Values are separated by commas, semicolons or
        tabs, whichever the header uses; where it is not the comma, numbers may have decimal commas.
    target : str
        Name of the column to predict. Its values may be text.
    drop : sequence of str
        Columns that are neither features nor the target.
    category : sequence of str
        Columns of numbers that are names of groups.

    Returns
    -------
    X : ndarray of shape (rows, features)
        float64 with NaN for missing values; object where columns hold text, with text and None in these columns.
    y : ndarray of shape (rows,)
        Integers or floats where every value is one, else text.
    feature_names : list of str

    Raises
    ------
    InvalidInputError
        When there is no such file or it is not a table with a header; when `target`, `drop` or `category` names no
        column; when a column holds dates, or text among numbers (named, with the remedy); when a value is infinite or
        one of the target is missing (named by row and column). Rows count from 1 below the header.
    """
    path = Path(path)

    def wanted(header: list[str]) -> list[str]:
        return [target, *_feature_names(path, header, {"target": [target], "drop": drop, "category": category})]

    labels, *features = _read(path, wanted, {target, *category})
    y = _as_target(path, target, list(labels.texts.values()))
    return _joined(path, features), y, [column.name for column in features]


def load_features(
    path: str | os.PathLike[str], names: Sequence[str], *, category: Sequence[str] = ()
) -> tuple[NDArray[Any], list[str]]:
    """Read the columns of these names, in this order, for a model that was fitted on them.

    X is as :func:`load_table` returns it; with it come the names of further columns of the file. In `category` are
    those of `names` that hold text, or numbers that are names of groups. A column that is not there, or holds text
    where the model expects numbers, is refused.
    """
    path, others = Path(path), list[str]()

    def wanted(header: list[str]) -> list[str]:
        missing = [name for name in names if name not in header]
        if missing:
            raise InvalidInputError(
                f"{path} has no column {', '.join(map(repr, missing))}, which the model was fitted on; "
                f"its columns are {', '.join(map(repr, header))}."
            )
        others.extend(name for name in header if name not in names)
        return list(names)

    return _joined(path, _read(path, wanted, set(category))), others


def _read(path: Path, wanted: Callable[[list[str]], list[str]], keep_text: Collection[str]) -> list[_Column]:
    """The columns of a file that `wanted` names, given the names in its header."""
    with _open_text(path) as lines:
        rows = _rows(path, lines)
        header = _checked_header(path, next(rows, (0, []))[1])
        line_numbers = array("q")
        columns = [_Column(name, name in keep_text, line_numbers) for name in wanted(header)]
        places = [header.index(column.name) for column in columns]
        while block := list(islice(rows, BLOCK)):
            for line, row in block:
                if len(row) != len(header):
                    raise InvalidInputError(
                        f"{path} names {len(header)} columns, but the number of values in line {line} is {len(row)}."
                    )
            line_numbers.extend(line for line, _ in block)
            cells = list(zip(*(row for _, row in block), strict=True))
            for j, column in zip(places, columns, strict=True):
                column.add(cells[j])
    if not columns[0].lines:
        raise InvalidInputError(f"{path} has a header but no rows; at least one row is needed.")
    return columns


def _joined(path: Path, columns: list[_Column]) -> NDArray[Any]:
    values = [column.values(path) for column in columns]
    X = np.empty((len(values[0]), len(values)), dtype=np.result_type(*values))
    for j, column in enumerate(values):
        X[:, j] = column
    return X


class _Column:
    """The values of a column: numbers, and by its row what is neither a number nor missing (or all of it)."""

    def __init__(self, name: str, keeps_text: bool, lines: array[int]) -> None:
        self.name = name
        self.keeps_text = keeps_text
        self.numbers = array("d")
        self.lines = lines
        self.texts: dict[int, str] = {}

    def add(self, cells: Sequence[str]) -> None:
        if not self.keeps_text and (plain := _plain_numbers(cells)) is not None:
            self.numbers.extend(plain)
            return
        cells = [cell.strip() for cell in cells]
        numbers = [_number(cell) for cell in cells]
        start = len(self.numbers)
        self.numbers.extend(numbers)
        for i, (cell, number) in enumerate(zip(cells, numbers, strict=True), start):
            if self.keeps_text or (number != number and cell.lower() not in MISSING):
                self.texts[i] = sys.intern(cell)

    def values(self, path: Path) -> NDArray[Any]:
        """Numbers with NaN where they are missing, or text with None."""
        numbers = np.array(self.numbers, dtype=np.float64)
        if self.texts:
            if not self.keeps_text:
                self._refuse_what_is_no_category(path, int((~np.isnan(numbers)).sum()))
            values = np.full(len(numbers), None, dtype=object)
            for i, text in self.texts.items():
                values[i] = None if text.lower() in MISSING else text
            return values
        infinite = np.flatnonzero(np.isinf(numbers))
        if infinite.size:
            row = int(infinite[0])
            more = f", and {len(infinite) - 1} more like it" if len(infinite) > 1 else ""
            raise InvalidInputError(
                f"{path} has an infinite value in row {row + 1} (line {self.lines[row]}), column {self.name!r}{more}. "
                f"Replace such values, leave them empty, or drop the column."
            )
        return numbers

    def _refuse_what_is_no_category(self, path: Path, n_numbers: int) -> None:
        texts = list(self.texts.values())
        if n_numbers:
            raise InvalidInputError(
                f"{path} has text among the numbers of column {self.name!r}, for example {texts[0]!r} "
                f"({len(texts)} of {n_numbers + len(texts)} values). Correct it, leave such cells empty, or say that "
                f"the column is a category: category=[{self.name!r}] (on the command line: --category {self.name!r})."
            )
        if all(DATE.match(text) for text in texts[:100]):
            raise InvalidInputError(
                f"{path} has dates in column {self.name!r}, for example {texts[0]!r}; turn them into numbers (days "
                f"since a day, or year, month and weekday in columns of their own), or drop the column."
            )
        if len(texts) > MOST_DISTINCT and len(set(texts)) == len(texts):
            raise InvalidInputError(
                f"{path} has another text in every row of column {self.name!r}, for example {texts[0]!r}: it names "
                f"rows instead of grouping them. Leave it out: drop=[{self.name!r}] (on the command line: "
                f"--drop {self.name!r})."
            )


def _plain_numbers(cells: Sequence[str]) -> array[float] | None:
    """All the cells as numbers, in half the time; None where one of them is something else, or may be."""
    try:
        numbers = array("d", map(float, cells))
    except ValueError:
        return None
    return None if np.isnan(np.frombuffer(numbers)).any() or "_" in "".join(cells) else numbers


def _number(cell: str) -> float:
    """The number that a cell holds; NaN for anything else."""
    try:
        # float() reads 1_000 as a number; in a file that is text.
        return float(cell) if "_" not in cell else float("nan")
    except ValueError:
        return float("nan")


def _open_text(path: Path) -> TextIO:
    if not path.exists():
        raise InvalidInputError(f"There is no file {str(path)!r}; check the name and the folder.")
    if not path.is_file():
        raise InvalidInputError(f"{str(path)!r} is not a file; pass a CSV file with a header line.")
    with path.open("rb") as start:
        compressed = start.read(2) == GZIP_MAGIC
    opened = partial(gzip.open, path) if compressed else path.open
    return cast(TextIO, opened(mode="rt", encoding=_encoding(opened), newline=""))


def _encoding(opened: Any) -> str:
    """UTF-8 where all bytes are, else Latin-1, in which old spreadsheets write."""
    try:
        with opened(mode="rt", encoding="utf-8") as text:
            while text.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return "latin-1"
    except (EOFError, OSError, zlib.error):
        pass  # reported where the table is read
    return "utf-8-sig"


def _rows(path: Path, lines: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Non-blank rows with their line numbers; the first one decides the delimiter."""
    try:
        header = lines.readline()
        if any(unicodedata.category(character) == "Cc" and character not in "\t\r\n" for character in header):
            raise InvalidInputError(f"{path} cannot be read as a table: it is no text; it must be a CSV file.")
        delimiter = max(DELIMITERS, key=header.count)
        yield 1, next(csv.reader([header], delimiter=delimiter), [])
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for row in reader:
            if any(cell.strip() for cell in row):
                if delimiter != ",":
                    row = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in row]
                yield reader.line_num + 1, row
    except (UnicodeDecodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
        raise InvalidInputError(
            f"{path} cannot be read as a table ({error}); it must be a CSV file in UTF-8 or Latin-1, plain or gzip."
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


def _feature_names(path: Path, header: list[str], named: Mapping[str, Sequence[str]]) -> list[str]:
    """The features, when all named columns exist and none has two roles."""
    for role, names in named.items():
        for name in [names] if isinstance(names, str) else names:
            if name not in header:
                raise InvalidInputError(
                    f"{role} {name!r} is not a column of {path}; its columns are {', '.join(map(repr, header))}."
                )
    (target,), drop = named["target"], named["drop"]
    if target in drop:
        raise InvalidInputError(f"{target!r} is both the target and dropped; it cannot be both.")
    features = [name for name in header if name != target and name not in drop]
    if not features:
        raise InvalidInputError(f"{path} has no feature left beside the target {target!r}; at least one is needed.")
    return features


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
