"""Losses of scores, averaged over points, with a (sub)gradient; on any backend. Bounds come from float64."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.base import Loss
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.logistic import Logistic

# Sums of slopes up to this are rounding, and this share of the terms of a bound is.
BALANCED, ROUNDING = 1e-11, 4.0 * float(np.finfo(np.float64).eps)
NEWTON_STEPS = 30
# Entry by entry in plain arithmetic, which tensors have, too.
SQUARED, HINGE = LeastSquares(), Hinge()


class ScoreLoss(ABC):
    """A convex loss of scores F against targets Y, both of shape (m, K), averaged over the m points.

    Classes are one column of -1 and 1 when there are two of them, and one column of 0 and 1 per class when there are
    more.
    """

    name: str

    @abstractmethod
    def pointwise(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        """The loss of every point, shape (m,), and its (sub)gradient in `F`, shape (m, K)."""

    def value_and_slope(self, F: Any, Y: Any, xp: Any, weights: Any = None) -> tuple[Any, Any]:
        """The mean loss, as an array without axes, and its gradient in `F`, shape (m, K).

        `weights`, shape (m,), multiply the losses; they are relative to the mean weight, which need not be 1 here.
        """
        values, slopes = self.pointwise(F, Y, xp)
        m = F.shape[0]
        if weights is None:
            return xp.sum(values) / m, slopes / m
        return xp.sum(weights * values) / m, slopes * (weights / m)[:, None]

    def value(self, F: Any, Y: Any, xp: Any, weights: Any = None) -> float:
        """The mean loss."""
        return float(self.value_and_slope(F, Y, xp, weights)[0])

    @abstractmethod
    def dual_point(self, F: Any, Y: Any, weights: Any) -> tuple[float, Any]:
        """A slope S of the mean loss that sums to 0 over the points, and minus the conjugate of the mean loss at S.

        By Fenchel and Young ``mean loss(G) >= constant + <S, G>`` for all scores G; an intercept adds nothing to that.
        Arrays are of float64, weights have mean 1; the constant comes first.
        """

    @abstractmethod
    def of_kernel(self, n_outputs: int) -> Loss:
        """The same loss of functions of a kernel, with an intercept."""

    def targets_of(self, codes: Any, n_classes: int) -> Any:
        """Classes as the targets this loss wants, from codes 0, ..., n_classes - 1."""
        if n_classes == 2:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        return (codes[:, None] == np.arange(n_classes)).astype(np.float64)


class _SmoothLoss(ScoreLoss):
    """A loss with derivatives, which is balanced by a shift of the scores."""

    def dual_point(self, F: Any, Y: Any, weights: Any) -> tuple[float, Any]:
        F = F + self.best_shift(F, Y, weights)
        value, S = self.value_and_slope(F, Y, np, weights)
        sums = np.abs(S.sum(axis=0))
        if sums.max() > BALANCED:
            return 0.0, np.zeros_like(F)  # losses are not negative
        products = S * (F - F.mean(axis=0))
        # What rounding does to sums must not be claimed.
        rounding = ROUNDING * np.abs(products).sum() + sums @ np.abs(F).max(axis=0)
        return float(value - products.sum() - rounding), S

    def best_shift(self, F: Any, Y: Any, weights: Any) -> Any:
        """The constants whose addition to the scores makes the mean loss least, shape (K,)."""
        shift = np.zeros(F.shape[1])
        for _ in range(NEWTON_STEPS):
            slope, curvature = self.shift_derivatives(F + shift, Y, weights)
            if np.abs(slope).max() <= 1e-15:
                break
            shift = shift - np.linalg.lstsq(curvature, slope, rcond=1e-12)[0]
        return shift

    @abstractmethod
    def shift_derivatives(self, F: Any, Y: Any, weights: Any) -> tuple[Any, Any]:
        """First and second derivative of the mean loss in a constant added to all scores, shapes (K,) and (K, K)."""


class SquaredLoss(_SmoothLoss):
    """``|f - y|^2``, summed over outputs."""

    name = "least_squares"

    def of_kernel(self, n_outputs: int) -> Loss:
        return LeastSquares()

    def pointwise(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        values, slopes = SQUARED.pointwise(Y, F)
        return xp.sum(values, axis=1), slopes

    def shift_derivatives(self, F: Any, Y: Any, weights: Any) -> tuple[Any, Any]:
        return 2.0 * (weights @ (F - Y)) / len(F), 2.0 * np.eye(F.shape[1])


class MarginLoss(ScoreLoss):
    """``max(0, 1 - margin)``: the margin is ``y f`` for two classes, ``f_y - max of the other f`` for more.

    The subgradient is y' - y where the margin is not met (paper, "Specific loss functions"), y' the best rival.
    """

    name = "hinge"

    def of_kernel(self, n_outputs: int) -> Loss:
        return _for_two_classes(Hinge(), n_outputs)

    def pointwise(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        if F.shape[1] == 1:
            values, slopes = HINGE.pointwise(Y, F)
            return values[:, 0], slopes
        own = xp.sum(Y * F, axis=1)
        rivals = xp.where(Y > 0.5, F * 0.0 - 1e30, F)
        slack = 1.0 - own + xp.max(rivals, axis=1)
        is_short = xp.astype(slack > 0.0, F.dtype)
        place = {} if isinstance(F, np.ndarray) else {"device": F.device}
        columns = xp.arange(F.shape[1], **place)
        is_best = xp.astype(columns[None, :] == xp.argmax(rivals, axis=1)[:, None], F.dtype)
        return slack * is_short, (is_best - Y) * is_short[:, None]

    def dual_point(self, F: Any, Y: Any, weights: Any) -> tuple[float, Any]:
        """For two classes the subgradient, the heavier side scaled down; for more nothing is said beyond 0."""
        if F.shape[1] > 1:
            return 0.0, np.zeros_like(F)
        S = self.value_and_slope(F, Y, np, weights)[1]
        sides = np.abs(S[Y > 0.0].sum()), np.abs(S[Y < 0.0].sum())
        S = S * np.where(Y > 0.0, min(sides) / max(sides[0], 1e-300), min(sides) / max(sides[1], 1e-300))
        return float(np.abs(S).sum()), S


class LogisticLoss(_SmoothLoss):
    """``log(1 + exp(-y f))`` for two classes, ``log sum exp f - f_y`` for more."""

    name = "logistic"

    def of_kernel(self, n_outputs: int) -> Loss:
        return _for_two_classes(Logistic(), n_outputs)

    def pointwise(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        if F.shape[1] == 1:  # written out: the special functions of `losses.Logistic` are for numpy alone
            z = Y * F
            small = xp.exp(-xp.abs(z))
            is_missed = z < 0.0
            # 1 / (1 + exp(z)) without overflow.
            return (xp.log1p(small) - z * is_missed)[:, 0], -Y * xp.where(is_missed, 1.0, small) / (1.0 + small)
        top = xp.max(F, axis=1, keepdims=True)
        E = xp.exp(F - top)
        total = xp.sum(E, axis=1, keepdims=True)
        return (xp.log(total) + top)[:, 0] - xp.sum(Y * F, axis=1), E / total - Y

    def shift_derivatives(self, F: Any, Y: Any, weights: Any) -> tuple[Any, Any]:
        slopes, shares = self.pointwise(F, Y, np)[1], weights / len(F)
        if F.shape[1] == 1:
            p = np.abs(slopes)
            return shares @ slopes, np.atleast_2d(shares @ (p * (1.0 - p)))
        P = slopes + Y
        return shares @ slopes, np.diag(shares @ P) - P.T @ (P * shares[:, None])


SCORE_LOSSES: dict[str, type[ScoreLoss]] = {loss.name: loss for loss in (SquaredLoss, MarginLoss, LogisticLoss)}


def _for_two_classes(loss: Loss, n_outputs: int) -> Loss:
    if n_outputs > 1:
        raise InvalidInputError(
            f"the loss of {n_outputs} classes is not a sum over outputs; pass the kernel and {loss!r} to FixedKernel, "
            "with a column of labels -1 and 1 for each class."
        )
    return loss


def score_loss(name: str, allowed: tuple[str, ...] = tuple(SCORE_LOSSES)) -> ScoreLoss:
    """The loss of a name, or a refusal that lists the names."""
    if name not in allowed:
        raise InvalidInputError(f"loss must be one of {', '.join(map(repr, allowed))}, got {name!r}.")
    return SCORE_LOSSES[name]()
