"""Choosing sigma and a ridge in closed form, while frequencies are as they were drawn."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.backend import Backend, to_numpy
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection
from convexkernels.criteria.ridge import path_residuals
from convexkernels.kernels.distances import typical_of
from convexkernels.kernels.stacked_frequencies import draw_layers
from convexkernels.threads import threads_for

# sigma times the median distance between points: from periods much longer than that to five within it; what suits most
# tables comes first, for the case that there is no time for all.
REACHES = (2.0, 1.0, 4.0, 0.5, 8.0, 16.0, 32.0)
RIDGES = tuple(10.0 ** np.arange(-7.0, 1.0, 0.5))
SELECTION_ROWS = 1500
# With a risk above this share of the variance no sigma says anything: a period within a median distance is taken.
UNINFORMATIVE = 0.97
SELECTION_COMPONENTS = 384
# On few rows risks are means over so many draws of frequencies, at most: about the work of one draw on many rows.
MOST_DRAWS = 2


@dataclass(frozen=True, eq=False)
class Width(Selection):
    """The choice of sigma and of a ridge, with the leave-one-out risk of every pair that was looked at.

    Risks, shape (n_sigmas, n_lams), are over the variance of the targets; `typical` is the sigma with about one period
    within the median distance of two points.
    """

    sigma: float
    lam: float
    sigmas: Array
    lams: Array
    risks: Array
    typical: float

    @property
    def chosen(self) -> dict[str, float]:
        return {"sigma": self.sigma, "ridge": self.ridge(self.sigma)}

    @property
    def curve(self) -> dict[str, Array]:
        sigmas, lams = np.meshgrid(self.sigmas, self.lams, indexing="ij")
        return {"sigma": sigmas.ravel(), "ridge": lams.ravel(), "error of rows left out": self.risks.ravel()}

    def ridge(self, sigma: float) -> float:
        """The best ridge of one of the sigmas."""
        return float(self.lams[int(np.argmin(self.risks[int(np.argmin(np.abs(self.sigmas - sigma)))]))])

    def shortlist(self, n: int) -> tuple[float, ...]:
        """The `n` sigmas of least risk, the best one first; where no risk says anything, those nearest to `typical`."""
        says_nothing = self.risks.min() > UNINFORMATIVE
        merit = np.abs(np.log(self.sigmas / self.typical)) if says_nothing else self.risks.min(axis=1)
        return tuple(float(self.sigmas[i]) for i in np.argsort(merit, kind="stable")[:n])


def typical_distance(X: Array, rng: Any, n_pairs: int = 4000) -> float:
    """Median distance of random pairs of rows; 1 where all of them are equal."""
    left, right = rng.integers(len(X), size=(2, n_pairs))
    return typical_of(np.sqrt(((X[left] - X[right]) ** 2).sum(axis=1)))


def choose_width(
    X: Any,
    Y: Any,
    weights: Any = None,
    *,
    stationary: bool,
    feature_map: str,
    rng: Any,
    sigmas: Sequence[float] | None = None,
    lams: Sequence[float] = RIDGES,
    n_rows: int = SELECTION_ROWS,
    n_components: int = SELECTION_COMPONENTS,
    factors: Array | None = None,
    measure: str = "gaussian",
    inner: Sequence[int] = (),
    clock: Clock | None = None,
) -> Width:
    """Choose sigma and a ridge by the leave-one-out risk of ridge regression on random features: nothing is trained.

    The risk of the whole ridge path costs one eigenvalue decomposition per sigma. All sigmas share one draw of
    frequencies, so that their risks can be compared; where rows are few a chance minimum of one draw would decide, and
    risks are means over two draws. At most `n_rows` rows and `n_components` frequencies, each times its factor where
    there are `factors`, are used. Without a list, sigmas are multiples of the inverse median distance by powers of two,
    then half-way steps around the best one. When the time is up, or at an interrupt, those so far have to do.
    """
    clock = Clock() if clock is None else clock
    rows = rng.permutation(X.shape[0])[:n_rows]
    X, Y = (to_numpy(part)[rows].astype(np.float64) for part in (X, Y))
    X = X if factors is None else X * factors
    shares = np.ones(len(Y)) if weights is None else to_numpy(weights)[rows].astype(np.float64)
    shares = shares / shares.mean()
    variance = max(float(shares @ ((Y - (shares @ Y) / len(Y)) ** 2).sum(axis=1)) / len(Y), 1e-300)
    draws = [
        draw_layers(
            X.shape[1],
            (*inner, n_components),
            stationary=stationary,
            feature_map=feature_map,
            rng=stream,
            backend=Backend("float64"),
            measure=measure,
        )
        for stream in (rng, *rng.spawn(min(MOST_DRAWS, max(1, n_rows // len(X))) - 1))
    ]
    ridges = np.asarray(lams, dtype=np.float64)
    # A list does not depend on distances, and neither do the draws that follow.
    unit = 1.0 / typical_distance(X, rng if sigmas is None else np.random.default_rng(0))
    risks: dict[float, Array] = {}
    try:
        for sigma in _halved(unit, risks) if sigmas is None else map(float, sigmas):
            # More threads do not help matrices of this size, and wait for each other where others want them, too.
            with threads_for(n_components):
                paths = [_path_risks(drawn.scaled(sigma)(X).values, Y, shares, ridges) for drawn in draws]
            risks[sigma] = np.mean(paths, axis=0) / variance
            if clock.is_over:
                clock.cut("the choice of sigma")
                break
    except KeyboardInterrupt:
        if not risks:
            raise
        clock.interrupt()
    ascending = np.array(sorted(risks))
    table = np.array([risks[sigma] for sigma in ascending])
    column = int(np.argmin(table)) % table.shape[1]
    found = Width(math.nan, float(ridges[column]), ascending, ridges, table, 1.5 * unit)
    return replace(found, sigma=found.shortlist(1)[0])


def _path_risks(P: Array, Y: Array, shares: Array, ridges: Array) -> Array:
    """Mean squared leave-one-out errors along a path of ridges."""
    left_out = path_residuals(P, Y.T, shares, len(P) * ridges, None, intercept=True)
    return np.array([np.mean(shares * (r**2).sum(axis=0)) for r in left_out])


def _halved(unit: float, risks: dict[float, Array]) -> Iterator[float]:
    """The sigmas to look at: multiples of `unit` by powers of two, then half-way steps around the best of them."""
    yield from (reach * unit for reach in REACHES)
    best = min(risks, key=lambda sigma: float(risks[sigma].min()))
    yield from (best * 2.0**-0.5, best * 2.0**0.5)


def matched_trace_weight(lam: float, W: Any) -> float:
    """The lam1 with which ``lam1 |W|_*`` pulls on a ridge solution W as hard, along W, as ``lam |W|_F^2`` does."""
    sigma = np.linalg.svd(np.asarray(to_numpy(W), dtype=np.float64), compute_uv=False)
    return 2.0 * lam * float((sigma**2).sum()) / max(float(sigma.sum()), 1e-300)
