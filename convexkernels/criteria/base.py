"""The contract of a criterion: what a Gram matrix is worth for a loss and targets, with its derivative."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Mask
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import Fit, fit

# Least and largest prediction of each output, shapes (n_outputs, 1); None where predictions are left as they are.
Bounds = tuple[Array, Array] | None

# Kernels and regularization parameters beyond exp of this have no digits left.
LARGEST_LOG_LAM = 40.0


class Criterion(ABC):
    """How good a kernel is: a number to minimize over kernels and, mostly, over the regularization parameter.

    Attributes
    ----------
    learns_lam : bool
        Whether lam is an unknown: a training value would always be least for lam = 0.
    lower : bool
        Whether it reads, and returns derivatives as, lower triangles only.
    resolution : float
        Relative gain within ten steps of a search that says something: a risk knows no more than its rows tell.
    """

    learns_lam: bool = True
    lower: bool = False
    resolution: float = 1e-3

    @property
    @abstractmethod
    def _bound(self) -> type[BoundCriterion]:
        """What `on` makes."""

    def accepts(self, loss: Loss) -> str | None:
        """None when the criterion is defined for `loss`, else the reason why not."""
        return None

    def on(
        self, loss: Loss, Y: Array, weights: Array, *, bounds: Bounds = None, seed: int = 0, dtype: Any = np.float64
    ) -> BoundCriterion:
        """The criterion on given targets.

        Parameters
        ----------
        loss : Loss
        Y : ndarray of shape (n_outputs, m)
        weights : ndarray of shape (m,), > 0
        bounds : pair of ndarray of shape (n_outputs, 1), optional
            Predictions are clipped to them before they are compared with targets.
        seed : int
            Of whatever is random.
        dtype : numpy dtype
            Of the Gram matrices that will come.
        """
        return self._bound(self, loss, Y, weights, bounds, seed, np.dtype(dtype))


class BoundCriterion(ABC):
    """A criterion on targets: a function of (K, log lam). Arguments and attributes are those of `Criterion.on`."""

    def __init__(
        self, criterion: Any, loss: Loss, Y: Array, weights: Array, bounds: Bounds, seed: int, dtype: Any
    ) -> None:
        self.criterion, self.loss, self.Y, self.weights, self.bounds = criterion, loss, Y, weights, bounds
        self.seed, self.dtype = seed, dtype
        self.prepare()

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Set what depends on the targets alone."""

    def train(self, K: Array, log_lam: float, tol: float) -> Fit:
        """The functions that a point stands for: the inner problem on all rows; K may be overwritten."""
        return fit(self.loss.at(self.lam(log_lam)), K, self.Y, self.weights, tol=tol)

    def known(self, K: Array) -> Fit | None:
        """The functions of `train` at the point evaluated last, whose matrix is given, where they are known.

        The matrix is overwritten where they are.
        """
        return None

    def lam(self, log_lam: float) -> float:
        """The regularization parameter that an unknown stands for."""
        return float(np.exp(log_lam))

    def along(self, K: Array, lams: Array) -> Array:
        """Values at a matrix, which is left alone, for several regularization parameters."""
        return np.array([self(K.copy(), float(np.log(lam))).value for lam in lams])

    @abstractmethod
    def __call__(self, K: Array, log_lam: float) -> CriterionValue:
        """Evaluate at a Gram matrix, shape (m, m), which may be overwritten."""


class CriterionValue(ABC):
    """The criterion at one matrix; inf where it is not defined at working precision."""

    value: float = np.inf

    @abstractmethod
    def slopes(self) -> tuple[Array, float]:
        """M with ``d value = sum_ab M_ab dK_ab`` for symmetric dK, shape (m, m), and the slope in log lam."""


def clipped(F: Array, bounds: Bounds) -> tuple[Array, Mask]:
    """Predictions moved into their bounds, and where they are not at them: where their losses answer to a change."""
    if bounds is None:
        return F, np.ones(F.shape, dtype=bool)
    inside = np.clip(F, *bounds)
    return inside, inside == F
