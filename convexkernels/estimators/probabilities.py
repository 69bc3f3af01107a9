"""Probabilities of classes from values of functions: links that are fitted to rows the functions have not seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from convexkernels.arrays import Array, Index

# Rows from which on a monotone function of any form can be told from noise.
ROWS_OF_ANY_FORM = 1000
# Slope of values that say nothing: the order of the classes stays.
LEAST_SLOPE = 1e-6


class Link(ABC):
    """From values of functions to probabilities."""

    @abstractmethod
    def __call__(self, F: Array) -> Array:
        """Probabilities, shape (m, n_classes), from values of shape (m, 1) for two classes, else (m, n_classes)."""


@dataclass(frozen=True, eq=False)
class Sigmoid(Link):
    """``softmax(g(F))`` with ``g(f)`` a multiple of f, one for f < 0 and one for f > 0.

    Platt's sigmoid in which two slopes take the place of slope and shift: the likeliest class is the predicted one.

    Attributes
    ----------
    below, above : float, > 0
    """

    below: float
    above: float

    def __call__(self, F: Array) -> Array:
        return np.asarray(softmax(_of_classes(F * np.where(F < 0.0, self.below, self.above)), axis=1))

    @classmethod
    def of(cls, F: Array, codes: Index, weights: Array) -> Sigmoid:
        """The likeliest, for Platt's targets: n of a class count as ``n + 1`` of ``n + 2``, so that none is certain.

        The difference of the slopes has a normal prior, which decides where there are hardly any rows.
        """
        unit = float(np.sqrt(np.mean(F**2))) or 1.0
        sides = [side(F, 0.0) / unit for side in (np.minimum, np.maximum)]
        below, above = likeliest(sides, codes, weights, LEAST_SLOPE, alike=1.0) / unit
        return cls(float(below), float(above))


@dataclass(frozen=True, eq=False)
class Isotonic(Link):
    """A nondecreasing function of the value that says which of two classes it is; 1/2 where that is 0.

    Attributes
    ----------
    below, above : pair of ndarray
        Values and the probabilities of the second class there.
    """

    below: tuple[Array, Array]
    above: tuple[Array, Array]

    def __call__(self, F: Array) -> Array:
        f = F[:, 0]
        p = np.where(f > 0.0, np.interp(f, *self.above), np.interp(f, *self.below))
        return np.column_stack([1.0 - p, p])

    @classmethod
    def of(cls, F: Array, codes: Index, weights: Array) -> Isotonic:
        """Least squares on either side of 0, as far from 0 and 1 as one row more would take it."""
        least = float(weights.mean() / (weights.sum() + weights.mean()))
        sides = []
        for inside, low, high in ((F[:, 0] <= 0.0, least, 0.5), (F[:, 0] > 0.0, 0.5 + least, 1.0 - least)):
            f, hit = np.append(F[inside, 0], 0.0), np.append(codes[inside], 0.5)
            found = IsotonicRegression(y_min=low, y_max=high).fit(f, hit, np.append(weights[inside], weights.mean()))
            sides.append((found.X_thresholds_.astype(np.float64), found.y_thresholds_.astype(np.float64)))
        return cls(*sides)


def likeliest(parts: Sequence[Array], codes: Index, weights: Array, least: float = 0.0, *, alike: float = 0.0) -> Array:
    """Coefficients c of the scores ``sum_k c_k parts[k]`` that make classes likeliest by a softmax.

    For Platt's targets: n of a class count as ``n + 1`` of ``n + 2``, so that none is certain.

    Parameters
    ----------
    parts : sequence of ndarray of shape (m, 1) for two classes, else (m, n_classes)
    codes : ndarray of int, shape (m,)
    weights : ndarray of shape (m,), > 0
    least : float, >= 0
        Coefficients are not below it.
    alike : float, >= 0
        Half the weight of their squared deviations from their mean, times their number: a normal prior.
    """
    sides = [_of_classes(part) for part in parts]
    n_classes, total = sides[0].shape[1], float(weights.sum())
    counts = np.bincount(codes, weights, n_classes)
    known = (counts + 1.0) / (counts + 2.0)
    T = np.repeat(((1.0 - known) / (n_classes - 1))[codes][:, None], n_classes, axis=1)
    T[np.arange(len(T)), codes] = known[codes]

    def unlikelihood(at: Array) -> tuple[float, Array]:
        scores = sum(c * side for c, side in zip(at, sides, strict=True))
        pull = weights[:, None] * (softmax(scores, axis=1) - T)
        apart = len(at) * (at - at.mean())
        value = 0.5 * alike * float(apart @ at) - float((weights[:, None] * T * log_softmax(scores, axis=1)).sum())
        return value / total, (np.array([(pull * side).sum() for side in sides]) + alike * apart) / total

    start, bounds = np.full(len(sides), 2.0 / len(sides)), [(least, None)] * len(sides)
    return np.asarray(minimize(unlikelihood, start, jac=True, bounds=bounds).x)


def _of_classes(F: Array) -> Array:
    """One column per class; of two classes the first has the value 0."""
    return np.hstack([np.zeros_like(F), F]) if F.shape[1] == 1 else F


def link_of(F: Array, Y: Array, weights: Array) -> Link:
    """The link for held-out values: of 1,000 or more rows of two classes an isotonic function, else a sigmoid.

    Parameters
    ----------
    F : ndarray of shape (n_outputs, m)
    Y : ndarray of shape (n_outputs, m)
        Positive for the class of the row, or for the second of two.
    weights : ndarray of shape (m,), > 0
    """
    seen = np.isfinite(F).all(axis=0)
    F, Y, weights = F[:, seen].T, Y[:, seen], weights[seen]
    codes: Index = (Y[0] > 0.0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0)
    form = Isotonic if len(F) >= ROWS_OF_ANY_FORM and F.shape[1] == 1 else Sigmoid
    return form.of(F, codes, weights)
