"""Boxes: the integration domains of tessellated kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.tessellated import check_corners
from convexkernels.validation import check_number


class BoxRule(ABC):
    """A rule that gives every feature an interval."""

    @abstractmethod
    def limits(self, n: int) -> tuple[Array, Array]:
        """Lower and upper corner for `n` features, each of shape (n,)."""

    def containing(self, X: Array) -> tuple[Array, Array]:
        """The corners, after checking that every row of `X` lies inside."""
        lower, upper = self.limits(X.shape[1])
        outside = (X < lower) | (X > upper)  # noqa: SIM300
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise InvalidInputError(
                f"X[{row}, {column}] = {X[row, column]:g} lies outside the box [{lower[column]:g}, {upper[column]:g}] "
                "of its feature; scale the table with sklearn.preprocessing.MinMaxScaler or pass "
                "box=Box.around(X, margin=0.5)."
            )
        # The volume bounds every integral; beyond the largest float nothing can be computed.
        if not np.log(upper - lower).sum() < 600.0:
            raise InvalidInputError(
                f"the volume of the box overflows (its sides are up to {(upper - lower).max():.3g} long, in "
                f"{X.shape[1]} features); scale the features to [0, 1]."
            )
        return lower, upper


class UnitBox(BoxRule):
    """``[-margin, 1 + margin]^n``, for features scaled to [0, 1].

    Parameters
    ----------
    margin : float, > 0
    """

    def __init__(self, margin: float = 0.5) -> None:
        self.margin = check_number("margin", margin, low=0.0, open_low=True)

    def limits(self, n: int) -> tuple[Array, Array]:
        return np.full(n, -self.margin), np.full(n, 1.0 + self.margin)

    def __repr__(self) -> str:
        return f"UnitBox(margin={self.margin:g})"


class Box(BoxRule):
    """The box with the given corners.

    Parameters
    ----------
    lower, upper : array-like of shape (n_features,)
        Every lower limit must be below its upper limit.
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = check_corners(np.atleast_1d(lower), np.atleast_1d(upper))

    @classmethod
    def around(cls, X: Any, margin: float = 0.5) -> Box:
        """The box of the data, every side extended by `margin` times the range of the feature."""
        check_number("margin", margin, low=0.0, open_low=True)
        low, high = np.min(X, axis=0), np.max(X, axis=0)
        pad = margin * np.where(high > low, high - low, 1.0)
        return cls(low - pad, high + pad)

    def limits(self, n: int) -> tuple[Array, Array]:
        if self.lower.size != n:
            raise InvalidInputError(f"the box has {self.lower.size} features, but X has {n}.")
        return self.lower, self.upper

    def __repr__(self) -> str:
        lower, upper = (
            ", ".join([f"{value:.6g}" for value in corner[:3]] + ["..."] * (corner.size > 3))
            for corner in (self.lower, self.upper)
        )
        return f"Box(lower=[{lower}], upper=[{upper}])"
