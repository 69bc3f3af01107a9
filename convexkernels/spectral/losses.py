"""Losses of scores, averaged over points, with a (sub)gradient; on any backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from convexkernels.exceptions import InvalidInputError

__all__ = ["SCORE_LOSSES", "LogisticLoss", "MarginLoss", "ScoreLoss", "SquaredLoss", "score_loss"]


class ScoreLoss(ABC):
    """A convex loss of scores F against targets Y, both of shape (m, K), averaged over the m points.

    Classes are one column of -1 and 1 when there are two of them, and one column of 0 and 1 per class when there are
    more.
    """

    name: str

    @abstractmethod
    def value_and_slope(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        """The mean loss, as an array without axes, and its gradient in `F`, shape (m, K)."""

    def value(self, F: Any, Y: Any, xp: Any) -> float:
        """The mean loss."""
        return float(self.value_and_slope(F, Y, xp)[0])

    def targets_of(self, codes: Any, n_classes: int) -> Any:
        """Classes as the targets this loss wants, from codes 0, ..., n_classes - 1."""
        if n_classes == 2:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        return (codes[:, None] == np.arange(n_classes)).astype(np.float64)


class SquaredLoss(ScoreLoss):
    """``|f - y|^2``, summed over outputs."""

    name = "squared"

    def value_and_slope(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        m = F.shape[0]
        difference = F - Y
        return xp.sum(difference * difference) / m, difference * (2.0 / m)


class MarginLoss(ScoreLoss):
    """``max(0, 1 - margin)``: the margin is ``y f`` for two classes, ``f_y - max of the other f`` for more.

    The subgradient is y' - y where the margin is not met (paper, "Specific loss functions"), y' the best rival.
    """

    name = "hinge"

    def value_and_slope(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        m, K = F.shape
        if K == 1:
            short = 1.0 - Y * F
            is_short = short > 0.0
            return xp.sum(xp.where(is_short, short, 0.0 * F)) / m, xp.where(is_short, -Y, 0.0 * F) / m
        own = xp.sum(Y * F, axis=1)
        rivals = xp.where(Y > 0.5, F * 0.0 - 1e30, F)
        short = 1.0 - own + xp.max(rivals, axis=1)
        is_short = xp.astype(short > 0.0, F.dtype)
        best = xp.argmax(rivals, axis=1)
        is_best = xp.astype(xp.arange(K, **_place(F))[None, :] == best[:, None], F.dtype)
        return xp.sum(short * is_short) / m, (is_best - Y) * (is_short / m)[:, None]


class LogisticLoss(ScoreLoss):
    """``log(1 + exp(-y f))`` for two classes, ``log sum exp f - f_y`` for more."""

    name = "logistic"

    def value_and_slope(self, F: Any, Y: Any, xp: Any) -> tuple[Any, Any]:
        m, K = F.shape
        if K == 1:
            z = Y * F
            small = xp.exp(-xp.abs(z))
            value = xp.sum(xp.log1p(small) + xp.where(z < 0.0, -z, 0.0 * z)) / m
            # 1 / (1 + exp(z)) without overflow.
            return value, -Y * xp.where(z < 0.0, 1.0 + 0.0 * z, small) / (1.0 + small) / m
        top = xp.max(F, axis=1, keepdims=True)
        E = xp.exp(F - top)
        total = xp.sum(E, axis=1, keepdims=True)
        value = xp.sum(xp.log(total) + top - xp.sum(Y * F, axis=1, keepdims=True)) / m
        return value, (E / total - Y) / m


SCORE_LOSSES: dict[str, type[ScoreLoss]] = {loss.name: loss for loss in (SquaredLoss, MarginLoss, LogisticLoss)}


def score_loss(name: str, allowed: tuple[str, ...] = tuple(SCORE_LOSSES)) -> ScoreLoss:
    """The loss of a name, or a refusal that lists the names."""
    if name not in allowed:
        raise InvalidInputError(f"loss must be one of {', '.join(map(repr, allowed))}, got {name!r}.")
    return SCORE_LOSSES[name]()


def _place(F: Any) -> dict[str, Any]:
    """Where new arrays have to be made to meet `F`."""
    return {} if isinstance(F, np.ndarray) else {"device": F.device}
