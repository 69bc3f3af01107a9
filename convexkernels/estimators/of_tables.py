"""Learned kernels on tables as people have them: with categories and missing values, as `predict` takes them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.estimators.columns import Columns, may_need_encoding
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_points, refuse_other_tables


class OfTables(Kernel):
    """k(x, y) = kernel(encoded x, encoded y), for rows of a table with the columns that an estimator learned from.

    Tables that are encoded already, as other methods pass them, are taken as they are.

    Parameters
    ----------
    kernel : Kernel
        On encoded tables.
    columns : Columns
    """

    def __init__(self, kernel: Kernel, columns: Columns) -> None:
        self.kernel, self.columns = kernel, columns

    def _points(self, X: Any, *, name: str = "X", n_features: int | None = None) -> Array:
        refuse_other_tables(X, name)
        names, n_encoded = self.columns.names, len(self.columns.encoded_names)
        try:
            found = [str(column) for column in X.columns] if hasattr(X, "columns") else np.shape(X)[1:]
        except ValueError as error:
            raise InvalidInputError(f"{name} is no table: {error} Pass rows of one length.") from error
        if found == (n_encoded,) and not may_need_encoding(X):
            return check_points(X, name=name)
        if found not in (names, (len(names),)):
            raise InvalidInputError(
                f"{name} must have the columns of the training table, {names}, or the {n_encoded} columns that "
                f"columns_.encoded makes of them, got {found if isinstance(found, list) else np.shape(X)}."
            )
        return check_points(self.columns.encoded(X), name=name)

    def _gram(self, X: Array, Y: Array) -> Array:
        return self.kernel._gram(X, Y)

    def _diag(self, X: Array) -> Array:
        return self.kernel._diag(X)

    def _sizes(self, X: Array) -> Array:
        return self.kernel._sizes(X)

    def _pullback(self, X: Array, Y: Array, M: Array) -> Array:
        return self.kernel._pullback(X, Y, M)

    def blocks(self, X: Any, dtype: Any = np.float64, device: Any = None) -> Callable[[slice, slice], Any]:
        return self.kernel.blocks(self._points(X), dtype, device)

    def squared_distances(self, X: Array, Y: Array) -> Array:
        return self.kernel.squared_distances(X, Y)

    def distances_from(self, X: Array) -> Callable[[int], Array]:
        return self.kernel.distances_from(X)


def of_tables(kernel: Kernel, columns: Columns | None) -> Kernel:
    """The kernel on tables as they were passed, from one on those that they became; None: these are the same."""
    return kernel if columns is None else OfTables(kernel, columns)
