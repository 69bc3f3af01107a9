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

# Half the weight of the squared entries that tell a read-out from one slope for all, values having unit deviations.
RIDGE = 3.0
FOLDS, STEPS = 5, 200
# How many standard errors of their difference a read-out has to be better by than the largest value.
CLEARLY = 2.0


@dataclass(frozen=True, eq=False)
class ReadOut:
    """Scores ``F A + c`` of the classes from the values F of their functions; the largest one wins.

    Attributes
    ----------
    A : ndarray of shape (n_classes, n_classes)
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
        unit = float(F.std(axis=0).mean()) or 1.0
        G, T = F / unit, codes[:, None] == np.arange(n_classes)

        def unlikelihood(at: Array) -> tuple[float, Array]:
            slope, B, c = at[0], at[1:-n_classes].reshape(n_classes, n_classes), at[-n_classes:]
            logarithms = log_softmax(slope * G + G @ B + c, axis=1)
            pull = weights[:, None] * (np.exp(logarithms) - T)
            value = 0.5 * RIDGE * float(np.vdot(B, B)) - float(weights @ logarithms[T])
            moves = [np.vdot(pull, G)], (G.T @ pull + RIDGE * B).ravel(), pull.sum(axis=0)
            return value / total, np.concatenate(moves) / total

        start = np.zeros(1 + n_classes**2 + n_classes)
        start[0] = 2.0
        found = minimize(unlikelihood, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
        B, c = found[1:-n_classes].reshape(n_classes, n_classes), found[-n_classes:]
        return cls((found[0] * np.eye(n_classes) + B) / unit, c - c.mean())


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
