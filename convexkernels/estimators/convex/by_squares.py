"""Families and regularization parameters compared by least squares, whose rows are left out in closed form."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.folds import spread_sample
from convexkernels.criteria.ridge import matrix_path_residuals
from convexkernels.driver import approach
from convexkernels.estimators.convex.path import ALL_BUT, EXACT, widened
from convexkernels.estimators.outliers import mean_of_targets
from convexkernels.exceptions import MemoryLimitError
from convexkernels.families.base import Family
from convexkernels.families.candidates import Candidates
from convexkernels.losses.epsilon_insensitive import deviation_of
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.solvers import make_solver

# Rows that are looked at, at most, and at least.
MOST_ROWS, FEWEST_ROWS = 400, 6
# Ridge, of rows of unit weight, with which kernels are learned that are compared, and how exactly: kernels differ less
# than what they are compared by.
RIDGE, TOL, STEPS = 0.05, 0.1, 3
# The place from the end of the list of candidates that is looked at first.
SMOOTH = 2
# By how much errors have to be less than those of smoother families: these have seen the rows, and larger ones have
# learned more of them.
GAIN = 0.05


@dataclass(frozen=True, eq=False)
class Glance:
    """What squares say of families, each with a kernel that was learned from all rows, and of values.

    Attributes
    ----------
    family : str
        The best one; of those that are as good, the smoothest.
    value : float
        Its value of the least error; the most regular one of those that are as good.
    deviation : float
        Deviation of the errors there.
    theta : ndarray
        The parameter of its kernel.
    errors : ndarray of shape (n_rows,)
        Errors of the rows that were looked at, there, in parts of the variance: their sum is 1 - R^2.
    scores : dict of str to ndarray of shape (n_values,)
        R^2 at rows left out, of every family that there was time for.
    problem : KernelLearning, optional
        That of the family on all rows, where its matrices were formed for them.
    """

    family: str
    value: float
    deviation: float
    theta: Array
    errors: Array
    scores: Mapping[str, Array]
    problem: KernelLearning | None = None


def glance(
    problem: KernelLearning,
    families: Mapping[str, Family],
    values: Array,
    name: str,
    scored: Array,
    clock: Clock,
) -> Glance | None:
    """Compare families, given from rough to smooth ones, and values of lam or C, the most regular first.

    Ridge regression with one learned kernel leaves out every row for all values by one eigendecomposition, with
    ``lam = 1 / (2 C)``. Rows with outliers are not looked at. None where rows are too few, targets are all alike, or
    there is no time.
    """
    rows = _rows(problem, scored)
    if len(rows) < FEWEST_ROWS:
        return None
    names, total = list(families), _total(problem, rows, scored)
    ridges = values if name == "lam" else 0.5 / values

    problems = _Problems(problem, families, rows)

    def find() -> dict[str, Any]:
        found = dict[str, _LeftOut]()
        for called in problems.in_order(found):
            if clock.is_over:
                break
            found[called] = _LeftOut.of(problems.of(called), ridges, scored[:, rows], clock)
        best = None
        for called in reversed([called for called in names if called in found]):
            least = found[called].errors.min()
            if np.isfinite(least) and (best is None or least < (1.0 - GAIN) * found[best].errors.min()):
                best = called
        if best is None:
            return {}
        errors = [found[called].errors if called in found else np.full(len(values), np.nan) for called in names]
        exact = EXACT * total if problem.loss.bears_outliers else 0.0
        return {"family": names.index(best), "errors": errors} | found[best].chosen(scored[:, rows], exact)

    stated = problem.loss, scored, list(families.values()), ridges, TOL
    known = clock.once(find, "families by squares", problem.X, problem.Y, problem.weights, *stated)
    if "family" not in known or not total > 0.0:
        return None
    scores = {called: 1.0 - row / total for called, row in zip(names, known["errors"], strict=True)}
    scores = {called: score for called, score in scores.items() if not np.isnan(score).all()}
    best, value, deviation = names[int(known["family"])], float(values[int(known["at"])]), float(known["deviation"])
    deviation = widened(deviation, problem.loss) if problem.loss.is_of_differences else 1.0
    return Glance(best, value, deviation, known["theta"], known["rows"] / total, scores, problems.whole_of(best))


def _rows(problem: KernelLearning, scored: Array) -> Index:
    """All rows or a sample, without outliers; of those with an outlier in some output, where most have one, all."""
    Y = problem.Y + problem.center[:, None]
    rows = np.arange(problem.m)
    if problem.m > MOST_ROWS:
        rows = spread_sample(Y, MOST_ROWS, np.random.default_rng(0))
    usual = (scored[:, rows] > 0.0).all(axis=0)
    return rows[usual] if 2 * usual.sum() >= len(rows) else rows[problem.weights[rows] > 0.0]


class _Problems:
    """The problem on some rows with each of several families; matrices that are in several lists are formed once."""

    def __init__(self, problem: KernelLearning, families: Mapping[str, Family], rows: Index) -> None:
        self.problem, self.families, self.rows = problem, families, rows
        self.names = list(families)
        self.shared: KernelLearning | None = None

    def in_order(self, found: Mapping[str, "_LeftOut"]) -> Iterator[str]:
        """Names of the families that are looked at.

        Of lists of candidates these are one in the middle, the smoother ones, the next rougher one, and where that is
        better those that are rougher still.
        """
        names, lists = self.names, [family for family in self.families.values() if isinstance(family, Candidates)]
        if len(names) == 1 or len(lists) < len(names):
            yield from names[::-1]
            return
        at = max(len(names) - SMOOTH, 0)
        # Where all lists do not fit the memory, each is formed by itself.
        with suppress(MemoryLimitError):
            self.shared = self.problem.on_rows(self.rows, lists[at].with_others(lists))
        yield from names[at:]
        yield from names[max(at - 1, 0) : at]
        if at > 1 and found[names[at - 1]].errors.min() < (1.0 - GAIN) * found[names[at]].errors.min():
            yield from names[: at - 1][::-1]

    def of(self, name: str) -> KernelLearning:
        """The problem with a family."""
        family: Any = self.families[name]
        if self.shared is not None:
            gram_set: Any = self.shared.gram_set
            return self.shared.with_gram_set(gram_set.of(family), family)
        return self.problem if self._is_whole(family) else self.problem.on_rows(self.rows, family)

    def whole_of(self, name: str) -> KernelLearning | None:
        """That with a family on all rows, where its matrices are there and as exact as they would be by themselves."""
        if self._is_whole(self.families[name]):
            return self.problem
        shared: Any = None if self.shared is None else self.shared.gram_set
        is_exact = shared is not None and shared.is_exact
        return self.of(name) if is_exact and len(self.rows) == self.problem.m else None

    def _is_whole(self, family: Family) -> bool:
        return family is self.problem.family and len(self.rows) == self.problem.m


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """The parameter of a learned kernel, and errors and residuals of rows left out at every ridge."""

    theta: Array
    errors: Array
    residuals: list[Array]

    @classmethod
    def of(cls, problem: KernelLearning, ridges: Array, scored: Array, clock: Clock) -> "_LeftOut":
        """For the kernel that all rows lead to in a few steps."""
        intercept = problem.loss.intercept
        squares = problem.with_loss(LeastSquares(RIDGE * float(problem.weights.mean()), intercept))
        theta, _ = approach(squares, make_solver("spectral-gradient"), tol=TOL, max_iter=STEPS, clock=clock)
        K = np.asarray(problem.gram_set.gram(theta), dtype=np.float64)
        residuals = list(matrix_path_residuals(K, problem.Y, problem.weights, ridges, intercept=intercept))
        return cls(theta, np.array([np.mean(R**2 * scored, axis=0).sum() for R in residuals]), residuals)

    def chosen(self, scored: Array, exact: float) -> dict[str, Any]:
        """The first place whose error is all but the least one, or as good as none, with the deviation there."""
        at = int(np.argmax(self.errors <= max(ALL_BUT * self.errors.min(), exact)))
        residuals = self.residuals[at]
        rows = np.mean(residuals**2 * scored, axis=0)
        return {"at": at, "deviation": deviation_of(residuals, scored), "theta": self.theta, "rows": rows}


def _total(problem: KernelLearning, rows: Index, scored: Array) -> float:
    """What errors are compared with: those of means."""
    Y, scored = (problem.Y + problem.center[:, None])[:, rows], scored[:, rows]
    return float(np.mean((Y - mean_of_targets(Y, scored)) ** 2 * scored, axis=0).sum())
