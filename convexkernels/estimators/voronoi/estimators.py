"""Estimators with one function per cell of a partition, for tables that are too long for one.

Meister and Steinwart, "Optimal learning rates for localized SVMs", JMLR 2016.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.cells.distributed.summary import TableSummary
from convexkernels.cells.function import FunctionsOfCells
from convexkernels.clock import Clock
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.intervals import check_coverage, margin_around, widened
from convexkernels.estimators.learned import Robust, Tube, in_units_of
from convexkernels.estimators.left_out import check_here, left_out_of_cells
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, NumberTargets, Targets
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.estimators.voronoi.base import VoronoiEstimator
from convexkernels.exceptions import InvalidInputError, MissingAttributeError
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EPSILON, EpsilonInsensitive, epsilon_for
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.pinball import Pinball


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiSVC(VoronoiEstimator, KernelClassifier):
    """Classification in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    loss : {"least_squares", "hinge"}
        Least squares on targets -1 and 1, which is several times as fast and as accurate; or SVMs.
    {cell_tol}
    {parameters}

    {Attributes: classes, cell_fitted}

    Notes
    -----
    With more than two classes there is one function per class in each cell, against the rest, and all functions of a
    cell share lam and the width. Functions have no intercept; with two classes, values are clipped to [-1, 1]. A cell
    of one class, or with one point, answers with that class; with nothing to validate on, the most regular pair of
    the grid is taken. {cell_tables}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import VoronoiSVC
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 'same', 'other')
    >>> model = VoronoiSVC(max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss: str = "least_squares"

    def _check_parameters(self) -> None:
        if self.loss not in ("least_squares", "hinge"):
            raise InvalidInputError(f"loss must be 'least_squares' or 'hinge', got {self.loss!r}.")
        super()._check_parameters()

    def _loss(self) -> Loss:
        return Hinge(intercept=False) if self.loss == "hinge" else LeastSquares(intercept=False)

    def _targets_of_summary(self, summary: TableSummary) -> ClassTargets:
        return ClassTargets.of_classes(summary.targets, summary.totals, self.class_weight)

    def _decide(self, clock: Clock) -> None:
        if self.estimator is None:  # another one would have to learn from folds, which it may not bear
            super()._decide(clock)


@dataclass(eq=False, repr=False, kw_only=True)
class _VoronoiRegressor(VoronoiEstimator, KernelRegressor):
    """Numbers as targets, one column or several."""

    def _of_range(self, y: Array, usual: tuple[Array, Array] | None = None) -> NumberTargets:
        return NumberTargets.by_range(y, usual)

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return self._of_range(table.y, self._usual(table))

    def _targets_of_summary(self, summary: TableSummary) -> NumberTargets:
        return self._of_range(summary.targets)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiRidge(_VoronoiRegressor):
    """Kernel ridge regression in the cells of a partition, each with its own regularization and width.

    {Parameters: cell_tol, parameters}
    {Attributes: cell_fitted}
    {Notes: cell_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import VoronoiRidge
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.sin(3 * X[:, 0]) + np.abs(X[:, 1])
    >>> model = VoronoiRidge(max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def _loss(self) -> LeastSquares:
        return LeastSquares(intercept=False)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiSVR(Tube, _VoronoiRegressor):
    """Support vector regression in the cells of a partition, each with its own regularization and width.

    Parameters
    ----------
    epsilon : float, >= 0, or None
        Deviation that costs nothing, in units of y, or of several outputs in units of half the range of each. None: a
        quarter of the deviation of errors of least squares at rows left out (by their median size where outliers
        rule their squares), but not less than 0.001 of half the range of the targets; 0.05 of it where the kernel,
        candidates for its width, or ``widths="isotropic"`` are given, where rows are fewer than ten (as weights count
        them), and where the time was up. Outliers are no part of a range.
    {cell_tol}
    {parameters}

    {Attributes: tube, cell_fitted}
    {Notes: cell_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import CellSelection, VoronoiSVR
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = np.sin(3 * X[:, 0]) + np.abs(X[:, 1])
    >>> selection = CellSelection(n_lams=4, n_widths=4)
    >>> model = VoronoiSVR(selection=selection, max_cell_size=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    epsilon: float | None = None

    # In units of the encoded targets: of what is being learned, and of the functions that are here.
    _epsilon = _fitted_epsilon = EPSILON

    def _check_parameters(self) -> None:
        self._epsilon = EPSILON if self.epsilon is None else self.epsilon  # as it is given, until there are targets
        super()._check_parameters()

    @property
    def _level(self) -> float | None:
        return 0.5 if self.estimator is None else None  # what others feel is not known

    def _loss(self) -> EpsilonInsensitive:
        return EpsilonInsensitive(epsilon=self._epsilon, intercept=False)

    def _of_range(self, y: Array, usual: tuple[Array, Array] | None = None) -> NumberTargets:
        targets = super()._of_range(y, usual)
        if self.epsilon is not None:
            self._epsilon = in_units_of(targets, self.epsilon)
        return targets

    @property
    def _asks_for_errors(self) -> bool:
        return self.epsilon is None

    def _expect(self, deviation: float, unit: float) -> None:
        if self._asks_for_errors:
            self._epsilon = epsilon_for(deviation, unit)

    def _finish_cells(self) -> None:
        super()._finish_cells()
        self._fitted_epsilon = self._epsilon

    def _tube(self) -> float:
        if self.estimator is not None:
            raise MissingAttributeError(f"VoronoiSVR has no epsilon_: its functions are those of {self.estimator!r}.")
        return self._fitted_epsilon


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class VoronoiQuantile(Robust, _VoronoiRegressor):
    """Quantile regression (pinball loss) in the cells of a partition, each with its own regularization and width.

    Of new rows fewer lie between two quantiles that were learned from a few hundred rows than between those of the
    population, by as much as the functions err: `predict_interval` makes up for it.

    Parameters
    ----------
    quantile : float, strictly between 0 and 1
    {cell_tol}
    {parameters}

    {Attributes: cell_fitted}
    {Notes: cell_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import CellSelection, VoronoiQuantile
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> y = X[:, 0] * np.random.default_rng(1).uniform(size=400)
    >>> selection = CellSelection(n_lams=4, n_widths=4)
    >>> model = VoronoiQuantile(quantile=0.9, selection=selection, max_cell_size=100, random_state=0).fit(X, y)
    >>> bool(0.8 < np.mean(y <= model.predict(X)) < 1.0)
    True
    """

    quantile: float = 0.5

    @property
    def _level(self) -> float | None:
        return self.quantile if self.estimator is None else None

    def _loss(self) -> Pinball:
        return Pinball(quantile=self.quantile, intercept=False)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Intervals that hold the targets of new rows with a given probability.

        Conformalized quantile regression (Romano, Patterson and Candes, 2019): the quantiles at ``(1 - coverage) / 2``
        and ``(1 + coverage) / 2``, learned in the same cells with the same lam and widths, and a margin around them,
        the same everywhere, with which quantiles that were learned without a fifth of the rows hold that share of
        these. Where it is less than 0, and quantiles are near to each other, an interval is the point between them.
        With an `estimator` in the cells all intervals have one length, from its residuals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a Dask array or dataframe
        coverage : float, strictly between 0 and 1
            For each output by itself.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Low and high. The first call for a coverage trains twelve functions in every cell, on at most 2,000 rows but
            for the two that are kept; later ones cost as much as two of `predict`.
        """
        check_is_fitted(self)
        check_coverage(coverage)
        if self.estimator is not None:
            return super().predict_interval(X, coverage)
        functions, margin = self._derived(f"between quantiles, {coverage!r}", lambda: self._between(coverage))
        return self._answer(X, partial(_interval, self.targets_, margin), functions)

    def _between(self, coverage: float) -> tuple[FunctionsOfCells, Array]:
        """The quantiles that enclose a coverage, and the margin around them."""
        check_here(self.function_)
        localized: Any = self.function_
        ends, left = [], []
        for quantile in (0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)):
            learner = replace(self._kernel_learner(), loss=Pinball(quantile=quantile, intercept=False))
            ends.append(replace(localized, functions=[learner.learned_again(cell) for cell in localized.functions]))
            left.append(left_out_of_cells(ends[-1], whole=False))
        low, high = (self.targets_.decoded(one.F.T) for one in left)
        targets: Any = self.targets_
        y, spread = targets.truth(left[0].Y.T), np.where(np.isnan(targets.constants), targets.spread, 0.0)
        return FunctionsOfCells(ends), margin_around(low, high, y, left[0].weights, coverage, spread)


def _interval(targets: Targets, margin: Array, values: Array) -> Array:
    """Intervals from the values of two functions side by side."""
    low, high = (targets.decoded(F) for F in np.split(np.asarray(values), 2, axis=1))
    return widened(low, high, margin)
