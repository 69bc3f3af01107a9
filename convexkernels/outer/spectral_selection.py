"""Choosing sigma and the regularization weights: in closed form while frequencies are fixed, by halving after that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.outer.spectral_arrays import Backend, to_numpy
from convexkernels.outer.spectral_features import SpectralMap
from convexkernels.outer.spectral_learning import SpectralLearning, SpectralPoint
from convexkernels.outer.spectral_training import Schedule, SpectralTraining

__all__ = ["Width", "choose_weights", "choose_width", "matched_trace_weight", "typical_distance"]

Array = NDArray[np.float64]

# sigma times the median distance between points: from waves much longer than that to five within it.
REACHES = tuple(2.0 ** np.arange(-1.0, 6.0))
RIDGES = tuple(10.0 ** np.arange(-7.0, 1.0, 0.5))
SELECTION_ROWS = 1500
# With a risk above this share of the variance no sigma has said anything: a wave within a median distance is taken.
SILENT = 0.97
SELECTION_WAVES = 384


@dataclass(frozen=True, eq=False)
class Width:
    """The choice of sigma and of a ridge, with the leave-one-out risk of every pair that was looked at.

    Attributes
    ----------
    sigma : float
    lam : float
    sigmas : ndarray of shape (n_sigmas,), ascending
    lams : ndarray of shape (n_lams,)
    risks : ndarray of shape (n_sigmas, n_lams)
        Mean squared leave-one-out error over the variance of the targets.
    """

    sigma: float
    lam: float
    sigmas: Array
    lams: Array
    risks: Array


def typical_distance(X: Array, rng: Any, n_pairs: int = 4000) -> float:
    """Median distance of random pairs of rows; 1 where all of them are equal."""
    left, right = rng.integers(len(X), size=(2, n_pairs))
    distances = np.sqrt(((X[left] - X[right]) ** 2).sum(axis=1))
    positive = distances[distances > 0.0]
    # Where most rows are equal the median says nothing; the distances that there are do.
    return float(np.median(positive)) if positive.size else 1.0


def choose_width(
    X: Any,
    Y: Any,
    *,
    stationary: bool,
    feature_map: str,
    rng: Any,
    sigmas: Sequence[float] | None = None,
    lams: Sequence[float] = RIDGES,
    n_rows: int = SELECTION_ROWS,
    n_frequencies: int = SELECTION_WAVES,
) -> Width:
    """Choose sigma and a ridge by the leave-one-out risk of ridge regression on random features: nothing is trained.

    The risk of the whole ridge path costs one eigenvalue decomposition per sigma. All sigmas share one draw of
    frequencies, so that their risks can be compared.

    Parameters
    ----------
    X : array of shape (m, n)
    Y : array of shape (m, K)
        Targets; classes as in :meth:`ScoreLoss.targets_of`.
    stationary, feature_map : as in SpectralMap.draw
    sigmas : sequence of float, optional
        Candidates. None: multiples of the inverse median distance by powers of two, then half-way steps
        around the best one.
    n_rows, n_frequencies : int
        At most so many rows and waves are used.
    """
    rows = rng.permutation(X.shape[0])[:n_rows]
    X, Y = (to_numpy(part)[rows].astype(np.float64) for part in (X, Y))
    Y = Y - Y.mean(axis=0)
    variance = max(float((Y**2).sum()) / len(Y), 1e-300)
    drawn = SpectralMap.draw(
        X.shape[1],
        n_frequencies,
        stationary=stationary,
        feature_map=feature_map,
        rng=rng,
        backend=Backend("float64"),
    )
    risks: dict[float, Array] = {}

    def look(sigma: float) -> None:
        if sigma not in risks:
            risks[sigma] = _leave_one_out(drawn.scaled(sigma)(X).values, Y, np.asarray(lams)) / variance

    if sigmas is None:
        unit = 1.0 / typical_distance(X, rng)
        for reach in REACHES:
            look(reach * unit)
        best = min(risks, key=lambda sigma: float(risks[sigma].min()))
        for factor in (2.0**-0.5, 2.0**0.5):
            look(best * factor)
    else:
        for sigma in sigmas:
            look(float(sigma))
    ascending = sorted(risks)
    table = np.array([risks[sigma] for sigma in ascending])
    row, column = divmod(int(np.argmin(table)), table.shape[1])
    if sigmas is None and table[row, column] > SILENT:
        row = int(np.searchsorted(ascending, 1.5 * unit))
    return Width(float(ascending[row]), float(lams[column]), np.array(ascending), np.asarray(lams, dtype=float), table)


def _leave_one_out(P: Array, Y: Array, lams: Array) -> Array:
    """Mean squared leave-one-out errors of ridge regression with intercept, ``mean loss + lam |W|^2``, for all lams."""
    m = len(P)
    P = P - P.mean(axis=0)
    if P.shape[1] <= m:
        squares, V = np.linalg.eigh(P.T @ P)
        Q = P @ V
    else:
        squares, U = np.linalg.eigh(P @ P.T)
        Q = U * np.sqrt(np.maximum(squares, 0.0))
    # Directions lost to rounding carry nothing.
    kept = squares > 1e-12 * max(squares[-1], 1e-300)
    squares, Q = squares[kept], Q[:, kept]
    projected, power = Q.T @ Y, Q**2
    risks = np.empty(len(lams))
    for i, lam in enumerate(lams):
        shrink = 1.0 / (squares + m * lam)
        left = Y - Q @ (shrink[:, None] * projected)
        free = 1.0 - power @ shrink - 1.0 / m
        risks[i] = np.mean(((left / np.maximum(free, 1e-6)[:, None]) ** 2).sum(axis=1))
    return risks


def matched_trace_weight(lam: float, W: Any) -> float:
    """The lam1 with which ``lam1 |W|_*`` pulls on a ridge solution W as hard, along W, as ``lam |W|_F^2`` does."""
    sigma = np.linalg.svd(np.asarray(to_numpy(W), dtype=np.float64), compute_uv=False)
    return 2.0 * lam * float((sigma**2).sum()) / max(float(sigma.sum()), 1e-300)


def choose_weights(
    folds: Sequence[tuple[SpectralLearning, SpectralPoint, Callable[[SpectralPoint], float]]],
    pairs: Sequence[tuple[float, float]],
    schedule: Schedule,
    *,
    rng: Any,
) -> tuple[tuple[float, float], Array]:
    """Choose (lam1, lam2) by successive halving: all pairs start from one point, and only the better half goes on.

    A pair that goes on continues its own run, moments of Adam included; nothing is trained again from zero.

    Parameters
    ----------
    folds : sequence of (problem, start, validate)
        The start (frequencies of the chosen sigma, W solved exactly) is shared by all pairs.
    pairs : sequence of (lam1, lam2)
    schedule : Schedule
        Its epochs are what the last pair gets.

    Returns
    -------
    best : (lam1, lam2)
    scores : ndarray of shape (n_pairs,)
        Mean best validation score over the folds, with as much training as the pair got.
    """
    seeds = rng.integers(2**32, size=len(folds))
    scores = np.full((len(folds), len(pairs)), -np.inf)
    runs: list[dict[int, SpectralTraining]] = []
    for f, (problem, start, validate) in enumerate(folds):
        runs.append(
            {
                i: SpectralTraining(
                    problem.with_weights(*pair),
                    start.copy(),
                    replace(schedule, patience=None),
                    np.random.default_rng(seeds[f]),  # the same order of rows for every pair
                    validate,
                )
                for i, pair in enumerate(pairs)
            }
        )
    alive = list(range(len(pairs)))
    rounds = max(1, int(np.ceil(np.log2(len(pairs)))))
    for remaining in range(rounds, 0, -1):
        n_epochs = max(1, schedule.max_epochs // 2 ** (remaining - 1)) - len(runs[0][alive[0]].history)
        for f, fold in enumerate(runs):
            for i in alive:
                fold[i].run(max(1, n_epochs))
                scores[f, i] = fold[i].best_score
        means = scores.mean(axis=0)
        order = sorted(alive, key=lambda i: -means[i])
        alive = order[: max(1, (len(order) + 1) // 2)]
        for fold in runs:
            for i in set(fold) - set(alive):
                del fold[i]
    return pairs[alive[0]], scores.mean(axis=0)
