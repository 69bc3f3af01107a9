"""Argument checks shared by every public entry point: each refusal names argument, value and remedy."""

import os
import reprlib
import sys
from collections.abc import Mapping
from datetime import date, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError, MemoryLimitError

# Products of two features are formed everywhere; beyond the square root of the largest float they overflow.
LARGEST_MAGNITUDE = 1e150
# Scales of kernels: values, their reciprocals and the squares of both are formed on the way to an answer.
LARGEST_SCALE = 1e50
# Values of kernel matrices, by the type they are stored in.
LARGEST_VALUE = {"float64": 1e100, "float32": 1e30}
# What counts days or seconds, in whatever unit it is stored in.
DATES = (date, timedelta, np.datetime64, np.timedelta64)
# What loses its imaginary part where it becomes a number.
COMPLEX = (complex, np.complexfloating)
# What is raised by an object that cannot become a number: 10**400 and signaling NaN are errors of arithmetic.
NO_NUMBERS = (TypeError, ValueError, ArithmeticError)
# Share of the free memory that is taken where no limit is given: others may want some, too.
FREE_SHARE = 0.8
# Targets meet regularization parameters up to 1e100 in products.
LARGEST_TARGET = 1e100


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    open_high: bool = False,
    remedy: str = "",
) -> float:
    """Return `value` as a float in [low, high] (without its open ends), or refuse it by name."""
    ok = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    try:
        number = float(value) if ok else float("nan")
    except OverflowError:  # a whole number of hundreds of digits
        number = float("inf")
    inside = low <= number <= high and not (open_low and number == low) and not (open_high and number == high)
    if not (ok and np.isfinite(number) and inside):
        bound = _bound(low, open_low) + (f" and {'<' if open_high else '<='} {high:g}" if np.isfinite(high) else "")
        raise InvalidInputError(f"{name} must be a finite number{bound}, got {shown(value)}. {remedy}".rstrip())
    return number


def shown(value: Any) -> str:
    """A value as a message shows it: long ones in part, and what cannot be written by its type."""
    try:
        return reprlib.repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # whole numbers of thousands of digits
        return f"a value of type {type(value).__name__}"


def _bound(low: float, open_low: bool) -> str:
    return f" {'>' if open_low else '>='} {low:g}" if np.isfinite(low) else ""


def check_whole_number(name: str, value: Any, *, low: int, remedy: str = "") -> int:
    """Return `value` as an int of at least `low`, or refuse it by name."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < low:
        raise InvalidInputError(f"{name} must be a whole number >= {low}, got {shown(value)}. {remedy}".rstrip())
    return int(value)


def check_vector(name: str, value: Any, size: int, *, per: str, low: float = -np.inf, open_low: bool = False) -> Array:
    """Return `value` as `size` finite numbers >= `low` (or > `low`), one per what `per` says, or refuse it by name."""
    try:
        vector = np.asarray(value, dtype=np.float64)
    except NO_NUMBERS:
        vector = np.empty(0)
    inside = vector > low if open_low else vector >= low
    if vector.shape != (size,) or not (inside & np.isfinite(vector)).all():
        bound = _bound(low, open_low)
        raise InvalidInputError(f"{name} must be {size} finite numbers{bound}, one per {per}, got {value!r}.")
    return vector


def check_scale(name: str, value: Any, *, remedy: str) -> float:
    """Return a positive factor of kernels as a float, or refuse it by name: beyond 1e50 nothing can be computed."""
    check_number(name, value, low=0.0, open_low=True)
    return check_number(name, value, low=1.0 / LARGEST_SCALE, high=LARGEST_SCALE, remedy=remedy)


def check_range(what: str, log_largest: float, dtype: Any, *, remedy: str) -> None:
    """Refuse kernels whose values, up to ``exp(log_largest)``, leave no room for computing with them."""
    limit = LARGEST_VALUE[np.dtype(dtype).name]
    if not log_largest <= np.log(limit):
        size = f"1e{log_largest / np.log(10.0):+.0f}" if np.isfinite(log_largest) else "infinity"
        raise InvalidInputError(
            f"{what} has values up to about {size}, more than the {limit:g} that {np.dtype(dtype).name} "
            f"leaves room for; {remedy}"
        )


def check_points(X: Any, *, name: str = "X", n_features: int | None = None) -> Array:
    """Return points as a C-contiguous float64 array of shape (m, n), or refuse them by name.

    Refused: sparse or on a cluster, not two-dimensional, empty, not numeric, NaN or infinite entries, magnitudes whose
    products overflow, the wrong number of columns.
    """
    points = _as_numbers(X, name)
    refuse_other_shapes(points, X, name)
    if points.size == 0:
        raise InvalidInputError(
            f"{name} is empty, its shape is {points.shape}; at least one row and column are needed."
        )
    if n_features is not None and points.shape[1] != n_features:
        raise InvalidInputError(f"{name} has {points.shape[1]} features, but {n_features} are expected.")
    largest = np.abs(points).max()
    if not largest <= LARGEST_MAGNITUDE:
        _refuse_entries(points, name, largest)
    return points


def is_distributed(*tables: Any) -> bool:
    """Whether one of the tables is a Dask collection; Dask is not loaded to find out."""
    return any(hasattr(table, "__dask_graph__") for table in tables)


def refuse_distributed(value: Any, name: str = "X", who: str = "this", remedy: str = "") -> None:
    """No table is brought from a cluster without a word."""
    if is_distributed(value):
        remedy = remedy or (
            "or learn a kernel on some rows, and pass it with the Dask table to VoronoiRidge(kernel=...) or "
            "VoronoiSVC(kernel=...)"
        )
        raise InvalidInputError(
            f"{name} is a Dask {type(value).__name__}, and {who} works in memory. Pass {name}.compute(); {remedy}."
        )


def refuse_other_tables(X: Any, name: str = "X") -> None:
    """What is neither in memory nor dense is not brought there: it may not fit, and the user has to say so."""
    refuse_distributed(X, name)
    kind = type(X).__name__
    if hasattr(X, "collect") and not hasattr(X, "__len__"):
        raise InvalidInputError(f"{name} is a {kind}, whose rows are not there yet; pass {name}.collect().")
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):
        raise InvalidInputError(f"{name} is a {kind} of {type(X).__module__}; pass {name}.to_pandas().")
    _refuse_sparse(X, name)


def refuse_other_shapes(points: NDArray[Any], X: Any, name: str = "X") -> None:
    """Refuse what has not become an array of two dimensions, with what makes a table of it."""
    if points.ndim == 2 and points.dtype.names is None:
        return
    records = [X, *(points[:1] if points.ndim == 1 else [])]
    if points.dtype.names or any(isinstance(one, Mapping) for one in records):
        remedy = f"Pass pandas.DataFrame({name})."
    elif points.ndim == 0:
        remedy = "Pass an array, a data frame or a list of rows."
    elif hasattr(X, "to_frame"):
        remedy = f"Pass {name}.to_frame() if it is one feature."
    elif points.ndim == 1:
        remedy = f"Reshape your data: one feature with {name}.reshape(-1, 1), one point with {name}.reshape(1, -1)."
    else:
        remedy = f"Reshape your data, so that every row is a vector: {name}.reshape(len({name}), -1)."
    found = f"shape {points.shape} ({type(X).__name__})" if points.ndim else reprlib.repr(X)
    raise InvalidInputError(f"{name} must be a table of shape (rows, features), got {found}. {remedy}")


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Return `value` as an array, or refuse it by name: rows of several lengths, complex numbers, dates."""
    try:
        found = np.asarray(unmasked(value))
    except NO_NUMBERS as error:
        raise InvalidInputError(
            f"{name} cannot become an array of numbers ({error}); pass rows of one length."
        ) from error
    if found.dtype.kind == "c" or _holds(found, COMPLEX):
        raise InvalidInputError(
            f"{name} holds complex numbers (Complex data not supported); pass real ones, for example {name}.real."
        )
    if found.dtype.kind in "mM" or _holds(found, DATES):
        raise InvalidInputError(
            f"{name} holds dates or times ({found.dtype}); turn them into numbers first, for example days since a day, "
            "(dates - dates.min()) / numpy.timedelta64(1, 'D')."
        )
    return found


def _holds(values: NDArray[Any], kinds: tuple[type, ...]) -> bool:
    """Whether there is one of these among objects; NaT is a missing value."""
    return values.dtype == object and any(isinstance(value, kinds) and value == value for value in values.flat)


def unmasked(value: Any) -> Any:
    """Masked entries of an array are missing: NaN among numbers, NaT among dates, None among anything else."""
    if not isinstance(value, np.ma.MaskedArray):
        return value
    if not np.ma.is_masked(value):
        return value.data
    kind = value.dtype.kind
    gap: Any = np.nan if kind in "biufc" else "NaT" if kind in "mM" else None
    filled = np.array(value.data, dtype=np.float64 if kind in "biu" else value.dtype if kind in "fcmM" else object)
    filled[np.ma.getmaskarray(value)] = gap
    return filled


def _refuse_sparse(X: Any, name: str) -> None:
    known = sys.modules.get("scipy.sparse")  # who has a sparse matrix has loaded it; to load it takes a while
    kinds = [type(kind).__name__ for kind in X.dtypes] if hasattr(X, "columns") and hasattr(X, "dtypes") else []
    is_frame = set(kinds) == {"SparseDtype"}
    if is_frame or (known is not None and known.issparse(X)):
        what = "data frame of sparse columns" if is_frame else "sparse matrix"
        dense = "sparse.to_dense()" if is_frame else "toarray()"
        raise InvalidInputError(
            f"{name} is a {what} of shape {X.shape}; sparse data is not supported. Pass {name}.{dense} if it "
            "fits memory, or reduce it first, for example with sklearn.decomposition.TruncatedSVD."
        )


def _as_numbers(X: Any, name: str) -> Array:
    refuse_other_tables(X, name)
    points = as_array(X, name)
    try:
        return np.ascontiguousarray(points.astype(np.float64) if points.dtype.kind in "OUS" else points, np.float64)
    except NO_NUMBERS as error:
        raise InvalidInputError(
            f"{name} must hold numbers only ({error}); encode text and category columns first, "
            "for example with sklearn.preprocessing.OneHotEncoder."
        ) from error


def _refuse_entries(points: Array, name: str, largest: float) -> None:
    bad = np.argwhere(~np.isfinite(points))
    if bad.size:
        row, column = bad[0]
        raise InvalidInputError(
            f"{name} has a missing or infinite value at row {row}, column {column} "
            f"({points[row, column]}); impute or drop it first."
        )
    raise InvalidInputError(
        f"{name} has an entry of magnitude {largest:.3g}, whose square overflows float64; rescale the column."
    )


def floats(name: str, value: Any) -> Array:
    """Return `value` as a float64 array of any shape, or refuse it by name."""
    refuse_distributed(value, name)
    as_array(value, name)
    try:
        return np.asarray(unmasked(value), dtype=np.float64)
    except NO_NUMBERS as error:
        raise InvalidInputError(f"{name} must hold numbers ({error}).") from error


def check_labels_finite(y: Any, m: int, *, name: str = "y") -> Array:
    """Return `y` as float64 with `m` rows, shape (m,) or (m, outputs), or refuse it by name."""
    values = np.ascontiguousarray(floats(name, y))
    if values.ndim not in (1, 2) or values.shape[0] != m:
        raise InvalidInputError(f"{name} has shape {values.shape}, but X has {m} rows; one entry per row is needed.")
    if not np.isfinite(values).all():
        where = tuple(np.argwhere(~np.isfinite(values))[0])
        raise InvalidInputError(
            f"{name} has a missing or infinite value at row {where[0]} ({values[where]}); drop that row first."
        )
    largest = float(np.abs(values).max(initial=0.0))
    if largest > LARGEST_TARGET:
        raise InvalidInputError(f"{name} has an entry of magnitude {largest:.3g}; rescale it to at most 1e100.")
    return values


def check_weights(sample_weight: Any, m: int, *, open_low: bool = False) -> Array:
    """Return weights of m rows, >= 0 and not all 0 (or > 0), or refuse them by name; None stands for ones."""
    if sample_weight is None:
        return np.ones(m)
    weights = floats("sample_weight", sample_weight)
    if weights.ndim == 0:
        weights = np.full(m, float(weights))
    if weights.shape != (m,):
        raise InvalidInputError(
            f"sample_weight has shape {weights.shape}, but X has {m} rows; pass one weight per row."
        )
    bad = ~(np.isfinite(weights) & (weights > 0.0 if open_low else weights >= 0.0))
    if bad.any():
        row, bound = int(np.flatnonzero(bad)[0]), "> 0; leave out rows of weight 0" if open_low else ">= 0"
        raise InvalidInputError(f"sample_weight must be finite and {bound}, got {weights[row]} at row {row}.")
    if not weights.any():
        raise InvalidInputError(
            "sample_weight is zero everywhere (all weights are 0); rows to learn from need a weight > 0."
        )
    return weights


def check_memory(needed: float, limit: float | None, *, what: str, remedy: str) -> None:
    """Refuse to allocate `needed` bytes when that is more than `limit` bytes (None: free memory)."""
    allowed = available_memory() if limit is None else float(limit)
    if needed > allowed:
        raise MemoryLimitError(
            f"{what} needs {_gibibytes(needed)} GiB, but the memory limit is {_gibibytes(allowed)} GiB. {remedy}"
        )


def _gibibytes(count: float) -> str:
    return f"{count / 2**30:.2f}" if count >= 0.005 * 2**30 else f"{count / 2**30:.3g}"


def allowed_memory(limit: float | None) -> float:
    """Bytes that work may take which can be done in other ways, too: `limit`, or most of the free memory."""
    return FREE_SHARE * available_memory() if limit is None else float(limit)


def available_memory() -> float:
    """Bytes of memory that can be allocated without swapping; inf where the system does not tell."""
    try:
        # An interrupt between opening and reading a file object would leave it to the collector, with a warning.
        descriptor = os.open("/proc/meminfo", os.O_RDONLY)
        try:
            lines = os.read(descriptor, 65536).decode("ascii").splitlines()
        finally:
            os.close(descriptor)
    except OSError:
        return float("inf")
    return next((float(line.split()[1]) * 1024.0 for line in lines if line.startswith("MemAvailable:")), float("inf"))
