"""What problems with dual variables share: a loss on weighted rows."""

from copy import copy
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss


def check_bounded_loss(loss: Any, others: str = "") -> None:
    """Refuse what is no loss, and losses under which nothing bounds the optimum; `others` names what takes these."""
    if not isinstance(loss, Loss):
        raise InvalidInputError(f"loss must be a Loss such as Hinge(C=1.0) or LeastSquares(lam=1.0), got {loss!r}.")
    if loss.needs_definite:
        raise InvalidInputError(
            f"{loss!r} has no finite value where the Gram matrix is singular, so that nothing bounds the optimum; "
            f"use LeastSquares with a small lam{others}."
        )


class OnRows:
    """A loss on rows: what problems with dual variables share."""

    loss: Loss
    Y: Array
    weights: Array

    @property
    def m(self) -> int:
        """Number of points."""
        return len(self.weights)

    def with_loss(self, loss: Loss) -> Self:
        """The same problem at another regularization parameter, or with another loss for the same targets."""
        other = copy(self)
        other.loss = loss
        other.__dict__.pop("_known", None)
        return other

    def stated_at(self, theta: Any) -> dict[str, Any]:
        """Loss, offset and bounds of a point, as `FixedKernel` takes them."""
        return {"loss": self.loss}

    def coefficients(self, alpha: Array) -> Array:
        """Coefficients w of every output, shape (n_outputs, m)."""
        return np.array([self.loss.coefficients(a, y) for a, y in zip(alpha, self.Y, strict=True)])

    def feasible(self, alpha: Any) -> Array:
        """Dual feasible variables near `alpha`, shape (n_outputs, m)."""
        rows = np.atleast_2d(np.asarray(alpha, dtype=np.float64))
        if rows.shape != self.Y.shape or not np.isfinite(rows).all():
            raise InvalidInputError(f"alpha must be finite, of shape {self.Y.shape}, got shape {rows.shape}.")
        return np.array([self.loss.feasible(a, y, self.weights) for a, y in zip(rows, self.Y, strict=True)])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_known"}


def free_centers(loss: Loss, Y: Array, weights: Array) -> Array:
    """Weighted means of targets that are far from zero for their spread, where an intercept makes them free; else 0."""
    if not (loss.intercept and loss.is_of_differences):
        return np.zeros(len(Y))
    counted = Y[:, weights > 0.0]
    # Rounding can move the mean of equal numbers away from them.
    means = np.clip(Y @ weights / weights.sum(), counted.min(axis=1), counted.max(axis=1))
    spread = np.abs(Y - means[:, None]).max(axis=1)
    return np.where(np.abs(means) > 10.0 * spread, means, 0.0)
