"""Probabilities of classes from values of functions: links that are fitted to rows the functions have not seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from convexkernels.arrays import Array, Index

__all__ = ["Link", "link_of"]

# Rows from which on a monotone function of any form can be told from noise.
ROWS_OF_ANY_FORM = 1000


class Link(ABC):
    """From values of functions to probabilities."""

    @abstractmethod
    def __call__(self, F: Array) -> Array:
        """Probabilities, shape (m, n_classes), from values of shape (m, 1) for two classes, else (m, n_classes)."""


@dataclass(frozen=True, eq=False)
class Sigmoid(Link):
    """``softmax(slope F)``; for two classes ``1 / (1 + exp(-slope f - shift))`` (Platt).

    Attributes
    ----------
    slope : float, >= 0
    shifts : ndarray of shape (n_classes,)
        Only the second of two may be other than 0: the class of the largest value stays the likeliest of several.
    """

    slope: float
    shifts: Array

    def __call__(self, F: Array) -> Array:
        return np.asarray(softmax(self.slope * _of_classes(F) + self.shifts, axis=1))

    @classmethod
    def of(cls, F: Array, codes: Index, weights: Array) -> Sigmoid:
        """The likeliest, for Platt's targets: n of a class count as ``n + 1`` of ``n + 2``, so that none is certain.

        The shift has a normal prior of variance 1, which keeps the classes apart where there are few rows.
        """
        S = _of_classes(F)
        n_classes = S.shape[1]
        unit = float(np.sqrt(np.mean(F**2))) or 1.0
        counts = np.bincount(codes, weights, n_classes)
        known = (counts + 1.0) / (counts + 2.0)
        T = np.repeat(((1.0 - known) / (n_classes - 1))[codes][:, None], n_classes, axis=1)
        T[np.arange(len(T)), codes] = known[codes]
        shifted = np.arange(n_classes, dtype=np.float64) * float(n_classes == 2)

        def unlikelihood(at: Array) -> tuple[float, Array]:
            scores = S * (at[0] / unit) + at[1] * shifted
            slopes = weights[:, None] * (softmax(scores, axis=1) - T)
            value = 0.5 * at[1] ** 2 - float((weights[:, None] * T * log_softmax(scores, axis=1)).sum())
            total = weights.sum()
            return value / total, np.array([(slopes * S).sum() / unit, (slopes @ shifted).sum() + at[1]]) / total

        found = minimize(unlikelihood, np.array([1.0, 0.0]), jac=True, bounds=[(0.0, None), (None, None)]).x
        return cls(float(found[0]) / unit, np.asarray(found[1] * shifted, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Isotonic(Link):
    """One nondecreasing function for every class against the rest; with more than two classes they are normalized."""

    curves: tuple[tuple[Array, Array], ...]

    def __call__(self, F: Array) -> Array:
        P = np.column_stack([np.interp(f, *curve) for f, curve in zip(F.T, self.curves, strict=True)])
        return np.hstack([1.0 - P, P]) if P.shape[1] == 1 else P / P.sum(axis=1, keepdims=True)

    @classmethod
    def of(cls, F: Array, codes: Index, weights: Array) -> Isotonic:
        """Least squares for every class, as far from 0 and 1 as one row more would take it."""
        curves = []
        for k, f in enumerate(F.T, start=int(F.shape[1] == 1)):
            hit = (codes == k).astype(np.float64)
            least = weights.mean() / (weights @ hit + weights.sum())
            found = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(f, hit, sample_weight=weights)
            curves.append((found.X_thresholds_.astype(np.float64), found.y_thresholds_.astype(np.float64)))
        return cls(tuple(curves))


def _of_classes(F: Array) -> Array:
    """One column per class; of two classes the first has the value 0."""
    return np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F


def link_of(F: Array, Y: Array, weights: Array, class_weights: Array) -> Link:
    """The link for held-out values, chosen by their number: a sigmoid, or isotonic functions.

    Parameters
    ----------
    F : ndarray of shape (n_outputs, m)
    Y : ndarray of shape (n_outputs, m)
        Positive for the class of the row, or for the second of two.
    weights : ndarray of shape (m,), > 0
    class_weights : ndarray of shape (n_classes,), > 0
        Factors in `weights` that say nothing of how frequent classes are: they are taken out.
    """
    seen = np.isfinite(F).all(axis=0)
    F, Y = F[:, seen].T, Y[:, seen]
    codes: Index = (Y[0] > 0.0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0)
    weights = weights[seen] / class_weights[codes]
    form = Sigmoid if len(F) < ROWS_OF_ANY_FORM else Isotonic
    return form.of(F, codes, weights)
