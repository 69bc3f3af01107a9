"""Probabilities of classes from values of functions: links that are fitted to rows the functions have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from convexkernels.arrays import Array, Index, as_counts

# Rows of two classes from which on more than one slope on each side of 0 can be told from noise; how many slopes, and
# rows for each.
ROWS_OF_MANY_SLOPES, MANY_SLOPES, ROWS_OF_A_SLOPE = 1000, 8, 20
# Slope of values that say nothing: the order of the classes stays.
LEAST_SLOPE = 1e-6
# How much slopes are alike, by a normal prior on their differences: one on each side, or many.
ALIKE_OF_TWO, ALIKE_OF_MANY = 1.0, 0.01
# What a class that is not predicted has of the probability of the predicted one, at most.
JUST_BELOW = 1.0 - 1e-6
# Rounds of fitting shares of classes, and rows of each that count as told and found in every round: few move little.
ROUNDS, ROWS_OF_A_CLASS = 5, 10.0


@dataclass(frozen=True, eq=False)
class Sigmoid:
    """``softmax(g(F))``, g increasing and piecewise linear with ``g(0) = 0``: from values to probabilities.

    Platt's sigmoid with slopes, below, between and above ascending knots, in the place of slope and shift: the
    likeliest class is the predicted one. Of more than two classes the others share what that leaves in proportion to
    `shares`, too: functions of one class against the rest do not say how frequent it is where it is not likely.
    """

    knots: Array
    slopes: Array
    shares: Array | None = None

    def __call__(self, F: Array) -> Array:
        """Probabilities, shape (m, n_classes), from values of shape (m, 1) for two classes, else (m, n_classes)."""
        scores = sum(slope * part for slope, part in zip(self.slopes, _pieces(F, self.knots), strict=True))
        P: Array = softmax(_of_classes(np.asarray(scores)), axis=1)
        return P if self.shares is None else _shared(P, F.argmax(axis=1), self.shares)

    @classmethod
    def of(cls, F: Array, codes: Index, weights: Array, most: int = 1) -> Sigmoid:
        """The likeliest, with at most so many slopes on each side of 0, which are alike where rows are few."""
        knots = [np.zeros(1)]
        for side in (F < 0.0, F > 0.0):
            count = min(most, int(side.sum()) // ROWS_OF_A_SLOPE)
            if count > 1:
                own = np.broadcast_to(weights[:, None], F.shape)[side]
                shares = np.arange(1, count) / count
                knots.append(np.quantile(F[side], shares, weights=own, method="inverted_cdf"))
        places = np.unique(np.concatenate(knots))
        unit = float(np.sqrt(np.average(F**2, axis=0, weights=weights).mean())) or 1.0
        alike = ALIKE_OF_TWO if len(places) == 1 else ALIKE_OF_MANY
        parts = [part / unit for part in _pieces(F, places)]
        found = cls(places, likeliest(parts, codes, weights, LEAST_SLOPE, alike=alike) / unit)
        if F.shape[1] == 1:
            return found
        return replace(found, shares=shares_of(found(F), F.argmax(axis=1), codes, weights))


def _shared(P: Array, predicted: Index, shares: Array) -> Array:
    """Probabilities whose rest, beside that of the predicted class, is shared anew; it stays the likeliest one."""
    rows = np.arange(len(P))
    top, others = P[rows, predicted], P.copy()
    others[rows, predicted] = 0.0
    rest = others.sum(axis=1)  # 1 - top has no digits where it is small
    others *= shares
    total = others.sum(axis=1)
    others *= (rest / np.where(total > 0.0, total, 1.0))[:, None]
    others = np.minimum(others, JUST_BELOW * top[:, None])
    others[rows, predicted] = top
    return others / others.sum(axis=1, keepdims=True)


def shares_of(P: Array, predicted: Index, codes: Index, weights: Array) -> Array:
    """Shares with which each class is told as often as it is found where another one is predicted, or nearly.

    By some rounds of proportional fitting.
    """
    weights = weights * min(1.0, len(weights) / float(weights.sum()))  # a large weight is not that of so many rows
    shares, other = np.ones(P.shape[1]), predicted[:, None] != np.arange(P.shape[1])
    found = np.bincount(codes, weights * (predicted != codes), P.shape[1])
    for _ in range(ROUNDS):
        told = weights @ (_shared(P, predicted, shares) * other)
        shares *= (found + ROWS_OF_A_CLASS) / (told + ROWS_OF_A_CLASS)
    return shares


def _pieces(F: Array, knots: Array) -> list[Array]:
    """Parts of F between knots, each 0 where F is: with one slope for all, their sum is F."""
    ends = [-np.inf, *knots.tolist(), np.inf]
    return [np.clip(F, low, high) - (low if low >= 0.0 else high) for low, high in pairwise(ends)]


def likeliest(parts: Sequence[Array], codes: Index, weights: Array, least: float = 0.0, *, alike: float = 0.0) -> Array:
    """Coefficients c of the scores ``sum_k c_k parts[k]`` that make classes likeliest by a softmax.

    None is certain: of two classes n rows of one count as ``n + 1`` of ``n + 2`` (Platt), one error of each. Of more
    classes these are two errors in all, too, because few rows of many classes would otherwise be mostly errors. Parts
    have shape (m, 1) for two classes, else (m, n_classes). Coefficients are not below `least`; `alike` is half the
    weight of their squared deviations from their mean, times their number: a normal prior.
    """
    sides = [_of_classes(part) for part in parts]
    n_classes, total = sides[0].shape[1], float(weights.sum())
    known = 1.0 - 2.0 / n_classes / (np.bincount(codes, weights, n_classes) + 2.0)
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


def link_of(F: Array, Y: Array, weights: Array) -> Sigmoid:
    """The link for held-out values: of 1,000 or more rows of two classes with several slopes on each side of 0.

    Y is positive for the class of the row, or for the second of two. Weights whose mean is
    below 1 say how rows compare, in any unit.
    """
    seen = np.isfinite(F).all(axis=0)
    F, codes, weights = F[:, seen].T, _codes_of(Y[:, seen]), as_counts(weights[seen])
    many = len(F) >= ROWS_OF_MANY_SLOPES and F.shape[1] == 1
    return Sigmoid.of(F, codes, weights, MANY_SLOPES if many else 1)


def deviance_of(F: Array, Y: Array, weights: Array) -> float:
    """Minus the logarithm of the likelihood of the classes, by the link for these values, which are finite."""
    told = np.take_along_axis(link_of(F, Y, weights)(F.T), _codes_of(Y)[:, None], axis=1)
    return -float(as_counts(weights) @ np.log(told[:, 0]))


def _codes_of(Y: Array) -> Index:
    """Numbers of the classes of targets, one row for two classes, else one for each."""
    return np.asarray((Y[0] > 0.0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0))
