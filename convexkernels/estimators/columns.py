"""Columns as people have them: categories become one indicator each, missing numbers an indicator beside the median."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index, Mask
from convexkernels.exceptions import InvalidInputError, tell
from convexkernels.validation import NO_NUMBERS, as_array, refuse_other_shapes, refuse_other_tables

# More categories than this are names of rows, not groups of them.
MOST_CATEGORIES = 1000
# Up to so many different texts, each met twice or more on average, are groups even where some of them are digits.
FEW_TEXTS = 20
# Numbers as people write them: with separators of thousands, signs of percent and of currencies.
WRITTEN_NUMBER = (
    r"\s*+(?=.*\d)[-+]?[$\u20ac\u00a3\u00a5]?\s?[-+]?(\d{1,3}([,' ]\d{3})+|\d*)(\.\d+)?\s?[%$\u20ac\u00a3\u00a5]?\s*+"
)
# Columns that a warning names.
TOLD = 5


@dataclass(frozen=True, eq=False)
class Columns:
    """What the columns of a training table hold, and how they become numbers.

    A column of categories becomes one column of 0 and 1 for each category that was seen; a missing value is a
    category of its own where training rows miss one, and a category that was never seen is none of them. In a column of
    numbers a missing value becomes the median, and a column of 0 and 1 that says where values are missing follows when
    training rows miss some. The learned kernel weighs these columns like any other; in cells, hierarchical and spectral
    kernels and concatenations those of one column of categories share a width.

    Attributes
    ----------
    names : list of str
        Of the columns as they were passed.
    categories : list
        For each column its categories in ascending order, or None where it holds numbers.
    fill : ndarray of shape (n_columns,)
        What a missing number becomes.
    marked : ndarray of bool, shape (n_columns,)
        Where a column follows that marks missing values.
    """

    names: list[str]
    categories: list[list[Any] | None]
    fill: Array
    marked: Mask

    @classmethod
    def of(cls, X: Any, rows: Index) -> Columns | None:
        """What the columns of these rows hold; None when all of them are numbers and none is missing.

        Raises
        ------
        InvalidInputError
            For dates and other objects, text that names rows, text among many numbers and sparse matrices; the message
            names the column and the remedy.
        """
        X = as_table(X)
        if not may_need_encoding(X):
            return None
        names, categories, fill, marked = [], [], [], []
        for name, column in _columns(X):
            values, missing = (part[rows] for part in _read(name, column))
            names.append(name)
            categories.append(_categories(name, values[~missing]) if values.dtype == object else None)
            numbers = values[~missing] if values.dtype != object else np.zeros(0)
            # Values count once, so that repeating a row and giving it weight are the same.
            fill.append(float(np.median(np.unique(numbers))) if numbers.size else 0.0)
            marked.append(bool(missing.any()))
        if not any(marked) and not any(kind is not None for kind in categories):
            return None
        return cls(names, categories, np.array(fill), np.array(marked))

    def encoded(self, X: Any) -> Array:
        """The table as numbers, shape (m, n_encoded).

        Warned of are columns without any category that was seen, and gaps in columns of numbers that had none.
        """
        blocks: list[Array] = []
        new: list[str] = []
        for j, (name, column) in enumerate(_columns(as_table(X))):
            kind = self.categories[j]
            values, missing = _read(name, column, kind is not None)
            if kind is not None:
                places = _places(name, kind, values, missing)
                blocks.extend((places == place).astype(np.float64) for place in range(len(kind)))
            elif values.dtype == object:
                raise InvalidInputError(
                    f"Column {name!r} held numbers when the estimator was fitted, but now it holds "
                    f"{_texts(values[~missing])[0]!r}; pass the same columns."
                )
            else:
                if missing.any() and not self.marked[j]:
                    new.append(f"{name!r} in {np.count_nonzero(missing)} of {len(missing)} rows")
                blocks.append(np.where(missing, self.fill[j], values))
            if self.marked[j]:
                blocks.append(missing.astype(np.float64))
        if new:
            others = f" and {len(new) - TOLD} others" if len(new) > TOLD else ""
            tell(
                f"There are gaps in column {', '.join(new[:TOLD])}{others}, where training rows missed none: medians "
                "stand for them, and the kernel does not know that they do. Fit with rows that miss these columns, or "
                "impute them."
            )
        return np.column_stack(blocks)

    @property
    def encoded_names(self) -> list[str]:
        """Names of the columns of the encoded table."""
        names = []
        for name, kind, marked in zip(self.names, self.categories, self.marked, strict=True):
            names += [name] if kind is None else [f"{name}={one}" for one in kind]
            names += [f"{name} is missing"] if marked else []
        return names

    @property
    def places(self) -> dict[str, list[int]]:
        """Where the columns of the encoded table stand that were made of each column."""
        ends, places = 0, {}
        for name, kind, marked in zip(self.names, self.categories, self.marked, strict=True):
            size = (1 if kind is None else len(kind)) + int(marked)
            places[name] = list(range(ends, ends + size))
            ends += size
        return places


def labels_of(estimator: Any) -> list[str]:
    """Names of the columns that a fitted estimator learned from; x0, x1, ... where they have none."""
    if estimator.columns_ is not None:
        return list(estimator.columns_.encoded_names)
    n = len(estimator.scaling_.scale)
    return [str(name) for name in getattr(estimator, "feature_names_in_", (f"x{j}" for j in range(n)))]


def as_table(X: Any, name: str = "X") -> Any:
    """A data frame as it is, anything else as an array of shape (rows, features), or refuse it by name."""
    refuse_other_tables(X, name)
    if _is_frame(X):
        return X
    table = as_array(X, name)
    refuse_other_shapes(table, X, name)
    return _with_types(table, X)


def may_need_encoding(X: Any) -> bool:
    """Whether a table holds something else than finite numbers; anything that is no table is left to other checks."""
    if _is_frame(X):
        return True
    if not isinstance(X, np.ndarray | list | tuple) or np.ndim(X) != 2:
        return False
    X = _with_types(np.asarray(X), X)
    if X.dtype.kind == "f":
        return bool(np.isnan(X).any())
    if X.dtype.kind == "U":
        return any(not _is_numeric(column) for column in X.T)
    return X.dtype == object and all(isinstance(x, str | float | int | np.number) or is_missing(x) for x in X.flat)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def _with_types(table: NDArray[Any], X: Any) -> NDArray[Any]:
    """The array of rows; beside texts, entries of a list or a tuple keep their types: NaN is not the text "nan"."""
    return np.asarray(X, dtype=object) if table.dtype.kind == "U" and isinstance(X, list | tuple) else table


def is_missing(value: Any) -> bool:
    """Whether an entry is None, NaN, or the NA or NaT of pandas: NA answers no comparison."""
    if isinstance(value, Decimal):
        return value.is_nan()  # a signaling one refuses to be compared
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (np.ndim(value) == 0 and value != value)


def _is_numeric(column: NDArray[Any]) -> bool:
    try:
        column.astype(np.float64)
    except NO_NUMBERS:
        return False
    return True


def _columns(X: Any) -> Iterator[tuple[str, Any]]:
    if _is_frame(X):
        yield from ((str(name), X[name]) for name in X.columns)
    else:
        yield from ((f"x{j}", X[:, j]) for j in range(X.shape[1]))


def _read(name: str, column: Any, of_categories: bool = False) -> tuple[NDArray[Any], Mask]:
    """The values of a column, float64 or, where they are categories, object; and where they are missing.

    In a column that is known to be `of_categories`, digits are text, too.
    """
    kind = str(getattr(column, "dtype", ""))
    values = np.asarray(column)
    if values.dtype.kind in "mM" or "date" in kind.lower():
        raise InvalidInputError(
            f"Column {name!r} holds dates or times ({kind}); turn them into numbers first, for example days since a "
            "day, or into their year, month and weekday, or leave the column out."
        )
    if kind not in ("category", "Categorical", "Enum") and values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        return numbers, np.isnan(numbers)
    values = values.astype(object)
    missing = np.array([is_missing(value) for value in values], dtype=bool)
    if not (of_categories or kind.startswith(("category", "Categorical", "Enum"))):
        try:
            numbers = np.full(len(values), np.nan)
            numbers[~missing] = values[~missing].astype(np.float64)
            return numbers, missing
        except NO_NUMBERS:
            _refuse_mixtures(name, values[~missing])
            _refuse_written_numbers(name, values[~missing])
    values[missing] = None
    return values, missing


def _refuse_mixtures(name: str, values: NDArray[Any]) -> None:
    """Text among numbers is more often a slip than a category, but for a few texts of which some are digits."""
    for k in range(len(values)):
        if not isinstance(values[k], Hashable) or not (isinstance(values[k], str) or _is_numeric(values[k : k + 1])):
            raise InvalidInputError(
                f"Column {name!r} holds {type(values[k]).__name__} objects ({reprlib.repr(values[k])}), neither "
                "numbers nor text; turn them into numbers first, for example dates and periods into days since a day, "
                "or leave the column out."
            )
    distinct = set(values.tolist())
    if all(isinstance(one, str) for one in distinct) and len(distinct) <= min(FEW_TEXTS, len(values) // 2):
        return
    texts = _texts(values)
    if len(texts) < len(values):
        raise InvalidInputError(
            f"X must hold numbers only, or text only, in a column, but column {name!r} does not: it holds {texts[0]!r} "
            "among numbers. Correct it, or make the column a pandas category if it is meant."
        )


def _refuse_written_numbers(name: str, values: NDArray[Any]) -> None:
    """Many texts that are all numbers but for signs and separators are no groups, however often one is met."""
    distinct = set(values.tolist())
    if len(distinct) > FEW_TEXTS and all(re.fullmatch(WRITTEN_NUMBER, str(one)) for one in distinct):
        raise InvalidInputError(
            f"Column {name!r} holds {len(distinct)} different texts in {len(values)} rows, for example {values[0]!r}: "
            "they look like numbers that are written as text. Make them numbers, or the column a pandas category."
        )


def _texts(values: NDArray[Any]) -> list[Any]:
    """Those of the values that are no numbers, not even digits."""
    return [value for value in values if isinstance(value, str) and not _is_numeric(np.array([value]))]


def _places(name: str, kind: list[Any], values: NDArray[Any], missing: Mask) -> Index:
    """The place of every value among the categories of a column, -1 where it is missing or was never seen.

    A value of a type that no category has is compared by what it says: in a table that was written to a file and read
    again, 1 and True may stand for "1" and "True".
    """
    types, exact = {_type(one) for one in kind}, {one: place for place, one in enumerate(kind)}
    said: dict[tuple[str, Any], list[int]] = {}
    for one in kind:
        said.setdefault(_said(one), []).append(exact[one])
    places, rows = np.full(len(values), -1), np.flatnonzero(~missing)
    for row, value in zip(rows, values[rows].tolist(), strict=True):
        alike = [exact.get(value, -1)] if _type(value) in types else said.get(_said(value), [-1])
        if len(alike) > 1:
            raise InvalidInputError(
                f"Column {name!r} held {kind[alike[0]]!r} and {kind[alike[1]]!r} when the estimator was fitted, and "
                f"{value!r}, which it holds now, may be both; pass values of the same type as then."
            )
        places[row] = alike[0]
    if kind and len(rows) and (places < 0).all():
        _tell_or_refuse_unseen(name, kind, values[rows].tolist())
    return places


def _tell_or_refuse_unseen(name: str, kind: list[Any], values: list[Any]) -> None:
    """A single row may be new in every respect; a whole column that is new was more likely read in another way."""
    first, known = values[0], ", ".join(repr(one) for one in kind[:3])
    comparable = {_type(one) for one in kind} | {_said(one)[0] for one in kind}
    if not any(_type(value) in comparable or _said(value)[0] in comparable for value in values):
        raise InvalidInputError(
            f"Column {name!r} held categories such as {known} when the estimator was fitted, but now it holds "
            f"{first!r}, a {type(first).__name__}; pass the same columns, with values of the same type as then."
        )
    if len(values) > 1:
        tell(
            f"None of the {len(values)} values of column {name!r}, for example {first!r}, is a category that was seen "
            f"when the estimator was fitted, such as {known}; they are all taken for unseen ones. Check how the column "
            "was read and spelled."
        )


def _type(value: Any) -> str:
    """Values of one type are compared as they are: 1, 1.0 and True are equal to each other, but to no text."""
    is_number = isinstance(value, Real | Decimal | np.bool_)
    return "number" if is_number else "text" if isinstance(value, str) else type(value).__name__


def _said(value: Any) -> tuple[str, Any]:
    """What a value says as text, behind its kind: 1, 1.0, "1" and "01" say the same, and so do True and "true"."""
    text = str(value).strip()
    if text.casefold() in ("true", "false"):
        return "truth", text.casefold()
    try:
        number = Decimal(text)
    except InvalidOperation:
        return "text", text
    return ("number", number) if number.is_finite() else ("text", text)


def _categories(name: str, values: NDArray[Any]) -> list[Any]:
    found = sorted(set(values.tolist()), key=lambda value: (str(type(value)), value))
    if len(found) > MOST_CATEGORIES or (len(found) > 20 and len(found) == len(values)):
        raise InvalidInputError(
            f"Column {name!r} holds {len(found)} different texts in {len(values)} rows, for example {found[0]!r}: they "
            "name rows instead of grouping them. Leave the column out, or group its values."
        )
    return found
