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
from convexkernels.estimators.left_out import check_time

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
            check_time()
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
    codes, counts = Y.argmax(axis=0)[seen], as_counts(weights[seen])
    for train, held in split_rows(Y[:, seen], FOLDS, np.random.default_rng(0)):
        found = ReadOut.of(F[:, seen[train]].T, codes[train], counts[train])
        scores[:, seen[held]] = found(F[:, seen[held]].T).T
    return scores


def read_out_for(F: Array, Y: Array, weights: Array) -> tuple[ReadOut | None, Array]:
    """The read-out of values at rows that functions have not seen, None where the largest value decides as well.

    It has to be right at more rows that it has not seen, too, by more than chance. With it come its scores at these
    rows, which it has not seen either; with None the values.

    Parameters
    ----------
    F, Y : ndarray of shape (n_classes, m)
        Values, NaN where they are not known, and targets, which are positive for the class of the row.
    weights : ndarray of shape (m,), > 0
        Those whose mean is below 1 say how rows compare, in any unit.
    """
    seen = np.flatnonzero(np.isfinite(F).all(axis=0))
    # Fewer rows than there are numbers to be found do not tell.
    if len(seen) < max(len(F) ** 2, 2 * FOLDS):
        return None, F
    scores, codes, own = held_out_scores(F, Y, weights), Y.argmax(axis=0)[seen], weights[seen]
    before, after = (values[:, seen].argmax(axis=0) != codes for values in (F, scores))
    gained = own * before - own * after
    if gained.sum() <= CLEARLY * np.linalg.norm(gained):
        return None, F
    return ReadOut.of(F[:, seen].T, codes, as_counts(own)), scores
