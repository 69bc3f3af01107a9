"""Candidates compared by their risks on held-out rows: over folds, who goes on, and who is best."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index


class Selection(ABC):
    """What was chosen, and the curve it was chosen from: what every choice of an estimator answers."""

    @property
    @abstractmethod
    def chosen(self) -> dict[str, Any]:
        """The value that was chosen for every parameter, by its name; not what follows from errors, as epsilon does."""

    @property
    @abstractmethod
    def curve(self) -> dict[str, Any]:
        """A table by columns: values that were tried for every parameter, and last what was found for them.

        What was not reached is not finite.
        """


def over_folds(sums: Array, weights: Array) -> Array:
    """Risks of candidates, shape (...), from the sums of weighted losses of each fold, shape (n_folds, ...).

    Weighted means over the folds that are known; inf for candidates of which others know more. Sums are inf or NaN
    where unknown.
    """
    known = np.isfinite(sums)
    counts = known.sum(axis=0)
    total = np.where(known, sums, 0.0).sum(axis=0) / np.maximum(np.tensordot(weights, known, 1), 1e-300)
    return np.where((counts > 0) & (counts == counts.max()), total, np.inf)


def survivors(risks: Array, count: int, noise: Array | float = np.inf) -> Index:
    """Places, in the flattened table, of at most `count` least risks within two standard errors of the least one."""
    risks = np.where(np.isnan(risks), np.inf, risks)
    order = np.argsort(risks, axis=None, kind="stable")[:count]
    return order[(risks <= risks.min() + 2.0 * noise).ravel()[order]]


def is_clearly_worse(losses: Array, others: Array, weights: Array) -> bool:
    """Whether weighted losses of rows exceed others, where both are known, by two standard errors of their sum."""
    excess = (losses - others) * weights
    excess = excess[np.isfinite(excess)]
    return bool(excess.sum() > 2.0 * np.sqrt(np.square(excess - excess.mean()).sum())) if excess.size else False


def least(risks: Array) -> tuple[int, int]:
    """The place of the least risk of a table; of equal ones the last, where tables have the most regular candidate."""
    i, k = np.unravel_index(np.flatnonzero(risks.ravel() <= risks.min())[-1], risks.shape)
    return int(i), int(k)
