"""Estimators that learn a concatenation ``h = f_1 o f_2 o ... o f_L``, every layer from the space of its own kernel.

Bohn, Griebel and Rieger, "A representer theorem for deep kernel learning". All layers are learned together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.comparison import Selection
from convexkernels.driver import stated
from convexkernels.estimators.concatenated.base import ConcatenatedEstimator, RegularizedConcatenation
from convexkernels.estimators.concatenated.settings import named, suited_epsilon
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.learned import Tube, level_of
from convexkernels.estimators.outliers import without_outliers
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import NumberTargets
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.exceptions import MissingAttributeError
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.interpolation import Interpolation
from convexkernels.problems.outer_learning import OuterLearning


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ConcatenatedKernelClassifier(KernelClassifier, RegularizedConcatenation):
    """Classification by functions, one class against the rest, that share their inner layers and the deep kernel.

    Least ``sum_i loss(y_i, h(x_i)) + lam |f_1|^2 + mu sum_l |f_l|^2``, ``h = f_1 o ... o f_L``, over all classes.

    Parameters
    ----------
    loss : {"least_squares", "hinge"} or Loss
        Squares of differences from -1 and 1, in closed form, or hinge with an intercept, solved as a SVM
        (``C = 1 / (2 lam)``), three to five times slower. Of a loss object everything but its regularization counts.
    {weights_of_norms}
    {parameters}

    {Attributes: classes, concatenated_chosen, concatenated_fitted}

    Notes
    -----
    The gradient of the hinge objective is exact at every point, by the envelope theorem.

    {inner_map_of_all_rows}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from convexkernels import ConcatenatedKernelClassifier
    >>> X, y = make_moons(60, noise=0.1, random_state=0)
    >>> model = ConcatenatedKernelClassifier(lam=0.05, mu=0.01, n_restarts=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss: Any = "least_squares"

    def _chosen_loss(self) -> Loss:
        return named(self.loss, ("hinge", "least_squares"))


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ConcatenatedKernelRegressor(Tube, KernelRegressor, RegularizedConcatenation):
    """Regression by a concatenation h: least ``sum_i loss(y_i, h(x_i)) + lam |f_1|^2 + mu sum_l |f_l|^2``.

    Problem [BGR19 (Reg)], for any number of layers ``h = f_1 o ... o f_L``.

    Parameters
    ----------
    loss : {"least_squares", "epsilon_insensitive"} or Loss
        With "epsilon_insensitive" deviations cost nothing up to a quarter of the deviation of errors of least
        squares with the plainest inner map at rows left out, without outliers (`epsilon_`). Of a loss object, as
        ``EpsilonInsensitive(epsilon=0.05)``, in units of the targets that are learned, everything but its
        regularization counts.
    {weights_of_norms}
    {parameters}

    {Attributes: concatenated_chosen, tube, concatenated_fitted}

    Notes
    -----
    The objective [BGR19 (16)] has three terms; they add up to ``lam y' (Q + lam I)^-1 y + mu |g|^2``
    [BGR19 (uR-X)].

    {inner_map_of_all_rows}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import ConcatenatedKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    >>> y = np.abs(X[:, 0] - X[:, 1])
    >>> model = ConcatenatedKernelRegressor(lam=1e-3, mu=1e-3, n_restarts=4, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    loss: Any = "least_squares"
    normalize_y: bool = True

    def _chosen_loss(self) -> Loss:
        return named(self.loss, ("least_squares", "epsilon_insensitive"))

    def _suited_loss(self, problem: OuterLearning, clock: Clock) -> Loss:
        if isinstance(self.loss, Loss) or not isinstance(problem.loss, EpsilonInsensitive):
            return problem.loss
        found = clock.once(lambda: {"epsilon": suited_epsilon(problem)}, "suited epsilon", *stated(problem))
        return EpsilonInsensitive(epsilon=float(found["epsilon"]))

    @property
    def _level(self) -> float | None:
        return level_of(self._chosen_loss())

    def _usual_rows(self, X: Array, Y: Array, weights: Array) -> Index | None:
        return None if self._usual_share == 1.0 else without_outliers(X, Y, weights)[0]

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        limits = self._usual(table)  # gaps and first weights know of outliers whatever the unit
        if not self.normalize_y:
            return NumberTargets.as_given(table.y)
        return NumberTargets.standard(table.y, table.weights, limits)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ConcatenatedKernelInterpolator(KernelRegressor, ConcatenatedEstimator):
    """Interpolate by a concatenation: least ``|f_1|^2 + mu sum_l |f_l|^2`` with ``f_1 o ... o f_L (x_i) = y_i``.

    Problem [BGR19 (Int)], ``y' Q^-1 y + |g|^2`` [BGR19 (1), (3), (uP-X)], for any number of layers.

    Parameters
    ----------
    mu : float or list of float, > 0, optional
        Weights of ``|f_2|^2, ..., |f_L|^2``; 1, as in the paper, when not given. A list has one entry per inner layer.
    nugget : float, >= 0
        Added to the diagonal of the outermost Gram matrix, relative to it, where the factorization needs it.
    tol : float, > 0
        Relative gradient at which the answer counts as stationary.
    {parameters}

    {Attributes: concatenated_fitted}

    Notes
    -----
    Points may be repeated only with the same value. One evaluation of the objective and its gradient costs O(m^3);
    a search of 64 starts at m = 100 takes seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import ConcatenatedKernelInterpolator
    >>> X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    >>> y = 1 / (0.1 + np.abs(X[:, 0] - X[:, 1]))
    >>> model = ConcatenatedKernelInterpolator(n_restarts=4, random_state=0).fit(X, y)
    >>> bool(np.abs(model.predict(X) - y).max() < 1e-4)
    True
    """

    nugget: float = 1e-12
    normalize_y: bool = True

    @property
    def selection_(self) -> Selection:
        """Refused: an interpolant has no lam, and mu is given."""
        check_is_fitted(self)
        raise MissingAttributeError(f"{type(self).__name__} has nothing to choose: there is no lam, and mu is given.")

    def _chosen_loss(self) -> Loss:
        return Interpolation(self.nugget)

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        Interpolation().rows_to_learn(table.X, np.atleast_2d(table.y.T))  # refuses contradictions by their rows
        return NumberTargets.standard(table.y, table.weights) if self.normalize_y else NumberTargets.as_given(table.y)
