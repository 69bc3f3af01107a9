"""How classes are read from functions of one class against the rest: by the largest, or by linear scores of all.

Where classes are in an order, the function of a middle one is large nowhere: it is masked by its neighbors, whose
functions say where it is (Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from convexkernels.arrays import Array, Index, as_counts
from convexkernels.criteria.folds import split_rows

# Half the weight of the squared differences of slopes from one for all, values having unit deviations.
RIDGE = 3.0
FOLDS, STEPS = 5, 200
# How many standard errors of their difference a read-out has to be better by than the largest value.
CLEARLY = 2.0


@dataclass(frozen=True, eq=False)
class ReadOut:
    """Scores ``F A + c`` of the classes from the values F of their functions; the largest one wins.

    No class is less likely for a larger value of its own function. Values at rows that are left out one by one would
    otherwise give their labels away: the mean of all others is larger without a row of the class.

    Attributes
    ----------
    A : ndarray of shape (n_classes, n_classes)
        What a value adds to each score, at most 0, and 0 to that of its own class.
    c : ndarray of shape (n_classes,)
    """

    A: Array
    c: Array

    def __call__(self, F: Array) -> Array:
        """Scores of shape (m, n_classes), from values of the same shape."""
        # A tensor keeps its kind.
        A, c = (self.A, self.c) if isinstance(F, np.ndarray) else (F.new_tensor(self.A), F.new_tensor(self.c))
        return F @ A + c

    @classmethod
    def of(cls, F: Array, codes: Index, weights: Array) -> ReadOut:
        """The likeliest by a softmax, which is near one slope for all values where rows are few."""
        n_classes, total = F.shape[1], float(weights.sum())
        unit, center = float(F.std(axis=0).mean()) or 1.0, F.mean(axis=0)
        G, T, others = (F - center) / unit, codes[:, None] == np.arange(n_classes), ~np.eye(n_classes, dtype=bool)

        def unlikelihood(at: Array) -> tuple[float, Array]:
            slope, A, c = at[0], np.zeros(others.shape), at[-n_classes:]
            A[others] = -at[1:-n_classes]
            logarithms = log_softmax(G @ A + c, axis=1)
            pull, apart = weights[:, None] * (np.exp(logarithms) - T), at[1:-n_classes] - slope
            value = 0.5 * RIDGE * float(apart @ apart) - float(weights @ logarithms[T])
            moves = RIDGE * apart - (G.T @ pull)[others]
            return value / total, np.concatenate([[-RIDGE * apart.sum()], moves, pull.sum(axis=0)]) / total

        n_slopes = 1 + n_classes * (n_classes - 1)
        start = np.repeat([2.0, 0.0], [n_slopes, n_classes])
        bounds = [(0.0, None)] * n_slopes + [(None, None)] * n_classes
        options = {"maxiter": STEPS}
        found = minimize(unlikelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        A, c = np.zeros(others.shape), found[-n_classes:]
        A[others] = -found[1:-n_classes] / unit
        return cls(A, c - center @ A)


def held_out_scores(F: Array, Y: Array, weights: Array) -> Array:
    """Scores at every row by read-outs of four fifths of the others; arguments and shape as of `read_out_for`."""
    scores, seen = np.full_like(F, np.nan), np.flatnonzero(np.isfinite(F).all(axis=0))
    codes, weights = Y.argmax(axis=0), as_counts(weights)
    for train, held in split_rows(Y[:, seen], FOLDS, np.random.default_rng(0)):
        rows = seen[train]
        scores[:, seen[held]] = ReadOut.of(F[:, rows].T, codes[rows], weights[rows])(F[:, seen[held]].T).T
    return scores


def read_out_for(F: Array, Y: Array, weights: Array) -> ReadOut | None:
    """The read-out of values at rows that functions have not seen, None where the largest value decides as well.

    It has to be right at more rows that it has not seen, too, by more than chance.

    Parameters
    ----------
    F, Y : ndarray of shape (n_classes, m)
        Values, NaN where they are not known, and targets, which are positive for the class of the row.
    weights : ndarray of shape (m,), > 0
        Those whose mean is below 1 say how rows compare, in any unit.
    """
    seen = np.flatnonzero(np.isfinite(F).all(axis=0))
    F, Y, weights = F[:, seen], Y[:, seen], weights[seen]
    # Fewer rows than there are numbers to be found do not tell.
    if len(seen) < max(len(F) ** 2, 2 * FOLDS):
        return None
    codes = Y.argmax(axis=0)
    before, after = (values.argmax(axis=0) != codes for values in (F, held_out_scores(F, Y, weights)))
    gained = weights * before - weights * after
    if gained.sum() <= CLEARLY * np.linalg.norm(gained):
        return None
    return ReadOut.of(F.T, codes, as_counts(weights))
