"""Estimators that learn a concatenation of functions from reproducing kernel Hilbert spaces.

Bohn, Griebel and Rieger, "A representer theorem for deep kernel learning". ``h = f_1 o f_2 o ... o f_L``, every
layer from the space of its own kernel; all layers are learned together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from convexkernels.estimators.concatenated_base import ConcatenatedEstimator, center_and_spread
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels import Kernel
from convexkernels.losses import EpsilonInsensitive, Hinge
from convexkernels.outer.outermost import Interpolation, SquaredError
from convexkernels.validation import check_number

__all__ = ["ConcatenatedKernelClassifier", "ConcatenatedKernelInterpolator", "ConcatenatedKernelRegressor"]

Array = NDArray[np.float64]


class _ConcatenatedNumbers(RegressorMixin, ConcatenatedEstimator):
    """Numbers as targets, one or several per row."""

    normalize_y: bool

    def _encoded(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Points, and targets in the units of the problem."""
        points, targets = self._table(X, y, multi_output=True, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        self.center_, self.spread_ = center_and_spread(targets, self.normalize_y)
        return points, (targets - self.center_) / self.spread_

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Evaluate the learned function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        values = self._outputs(X)
        return (values[:, 0] if self.center_.ndim == 0 else values) * self.spread_ + self.center_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ConcatenatedKernelInterpolator(_ConcatenatedNumbers):
    """Interpolate by a concatenation: least ``|f_1|^2 + mu sum_l |f_l|^2`` with ``f_1 o ... o f_L (x_i) = y_i``.

    Problem (Int) of the paper, for any number of layers.

    Parameters
    ----------
    layers : list of Kernel, optional
        K_1, ..., K_L, outermost first: ``[Matern(2), Polynomial(1)]``, the default, is Matern o Poly, whose inner
        map is affine. All but the last have to be differentiable.
    widths : int or list of int, optional
        Output dimensions of f_2, ..., f_L, outermost first; the number of features when not given.
    weights : list of array-like, optional
        Diagonals a of the matrix-valued kernels ``K_l diag(a)`` of f_2, ..., f_L; ones when not given.
    mu : float or list of float, > 0
        Weights of ``|f_2|^2, ..., |f_L|^2``; the paper has 1. A list has one entry per inner layer.
    nugget : float, >= 0
        Added to the diagonal of the outermost Gram matrix, relative to it; makes the misfit that small, and the
        factorisation possible where inner images nearly coincide.
    normalize_y : bool
        Whether targets are centred and scaled to unit variance first. The paper leaves them alone.
    repulsion : float, >= 0
        The gamma of (12): keeps the images g(x_i) apart by ``gamma sum coth(|g(x_i) - g(x_j)|^2)``.
    n_restarts : int, >= 1
        Starts of the search: the identity and random inner maps. The best objective is kept.
    search_size : int, optional
        With more rows than this, norm weights and starts are searched on so many of them, and the best inner map is
        continued on all rows. None: always all.
    tol : float, > 0
        Relative gradient at which the answer counts as stationary.
    max_iter : int, >= 1
        Iterations per start.
    max_time : float, optional
        Seconds of the final search, after which the best answer so far is kept, with a warning.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Processes that share folds and starts.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    kernel_ : Concatenated
        The learned deep kernel, usable in any kernel machine.
    solution_ : OuterSolution
        With the stationarity certificate; the problem is non-convex, so nothing says that no better answer exists.
    machine_ : OutermostFit
        Coefficients of the outermost layer on the training points.
    n_iter_ : int
        Iterations of all starts together.
    n_features_in_ : int
    center_, spread_ : ndarray of shape () or (n_outputs,)
        How targets were normalized.

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

    def __init__(
        self,
        layers: Sequence[Kernel] | None = None,
        *,
        widths: Any = None,
        weights: Any = None,
        mu: Any = 1.0,
        nugget: float = 1e-12,
        normalize_y: bool = True,
        repulsion: float = 0.0,
        n_restarts: int = 64,
        search_size: int | None = 400,
        tol: float = 1e-4,
        max_iter: int = 500,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.layers = layers
        self.widths = widths
        self.weights = weights
        self.mu = mu
        self.nugget = nugget
        self.normalize_y = normalize_y
        self.repulsion = repulsion
        self.n_restarts = n_restarts
        self.search_size = search_size
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn all layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs share the inner layers.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts; repeated points with different values are named by their rows.
        NotDifferentiableError
            When a kernel other than the innermost has no derivative.
        """
        loss = Interpolation(self.nugget)
        points, targets = self._encoded(X, y)
        problem = self._problem(points, targets, loss)
        self._search(problem.with_parameters(loss, self.mu))
        return self


class ConcatenatedKernelRegressor(_ConcatenatedNumbers):
    """Regression by a concatenation h: least ``sum_i loss(y_i, h(x_i)) + lam |f_1|^2 + mu sum_l |f_l|^2``.

    Problem (Reg) of the paper, for any number of layers ``h = f_1 o ... o f_L``.

    Parameters
    ----------
    layers : list of Kernel, optional
        K_1, ..., K_L, outermost first: ``[Matern(2), Polynomial(1)]``, the default, is Matern o Poly, whose inner
        map is affine. All but the last have to be differentiable.
    widths : int or list of int, optional
        Output dimensions of f_2, ..., f_L, outermost first; the number of features when not given.
    weights : list of array-like, optional
        Diagonals a of the matrix-valued kernels ``K_l diag(a)`` of f_2, ..., f_L; ones when not given.
    loss : {"squared", "epsilon_insensitive"}
    epsilon : float, >= 0
        Deviation that costs nothing, in units of the (normalized) targets; for ``loss="epsilon_insensitive"``.
    lam, mu : float, list of float or None
        Weights of ``|f_1|^2`` and of ``sum_l |f_l|^2``. Lists are cross-validated; None is the list ``2^(1 - 2t)``
        for t = -2, 0, 2, ..., 10. The paper has t = 1, ..., 10: ``outer.concatenated_selection.PAPER_GRID``.
    cv : int, >= 2
        Number of folds.
    normalize_y : bool
        Whether targets are centred and scaled to unit variance first. The paper leaves them alone.
    repulsion : float, >= 0
        The gamma of (12): keeps the images g(x_i) apart by ``gamma sum coth(|g(x_i) - g(x_j)|^2)``.
    n_restarts : int, >= 1
        Starts of the search: the identity and random inner maps. The best objective is kept.
    search_size : int, optional
        With more rows than this, norm weights and starts are searched on so many of them, and the best inner map is
        continued on all rows. None: always all.
    tol : float, > 0
        Relative gradient at which the answer counts as stationary.
    max_iter : int, >= 1
        Iterations per start.
    max_time : float, optional
        Seconds of the final search, after which the best answer so far is kept, with a warning.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Processes that share folds and starts.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    kernel_ : Concatenated
        The learned deep kernel, usable in any kernel machine.
    solution_ : OuterSolution
        With the stationarity certificate; the problem is non-convex, so nothing says that no better answer exists.
    machine_ : OutermostFit
        Coefficients of the outermost layer on the training points.
    n_iter_ : int
        Iterations of all starts together.
    n_features_in_ : int
    lam_, mu_ : float
        The norm weights that were used.
    selection_ : Selection or None
        Validation risks of all pairs, when there was a choice.
    center_, spread_ : ndarray of shape () or (n_outputs,)
        How targets were normalized.

    Notes
    -----
    The objective printed as (16) has three terms; they add up to ``lam y' (Q + lam I)^-1 y + mu |g|^2``. Features
    should be of comparable scale: put a StandardScaler in front. Of the cross-validated pairs the one with the least
    held-out loss is taken (the paper says "smallest function value of (Reg)", which would always be the smallest
    lam and mu).

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

    def __init__(
        self,
        layers: Sequence[Kernel] | None = None,
        *,
        widths: Any = None,
        weights: Any = None,
        loss: str = "squared",
        epsilon: float = 0.1,
        lam: Any = None,
        mu: Any = None,
        cv: int = 5,
        normalize_y: bool = True,
        repulsion: float = 0.0,
        n_restarts: int = 64,
        search_size: int | None = 400,
        tol: float = 1e-4,
        max_iter: int = 500,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.layers = layers
        self.widths = widths
        self.weights = weights
        self.loss = loss
        self.epsilon = epsilon
        self.lam = lam
        self.mu = mu
        self.cv = cv
        self.normalize_y = normalize_y
        self.repulsion = repulsion
        self.n_restarts = n_restarts
        self.search_size = search_size
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn all layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs share the inner layers.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts.
        NotDifferentiableError
            When a kernel other than the innermost has no derivative.
        """
        if self.loss not in ("squared", "epsilon_insensitive"):
            raise InvalidInputError(f"loss must be 'squared' or 'epsilon_insensitive', got {self.loss!r}.")
        make_loss = SquaredError if self.loss == "squared" else partial(_epsilon_insensitive, self.epsilon)
        points, targets = self._encoded(X, y)
        self._search(self._select(points, targets, make_loss, self.lam, self.mu, self.cv))
        return self


class ConcatenatedKernelClassifier(ClassifierMixin, ConcatenatedEstimator):
    """Classification by machines, one class against the rest, that share their inner layers and the deep kernel.

    Least ``sum_i loss(y_i, h(x_i)) + lam |f_1|^2 + mu sum_l |f_l|^2``, ``h = f_1 o ... o f_L``, over all classes.

    Parameters
    ----------
    layers : list of Kernel, optional
        K_1, ..., K_L, outermost first: ``[Matern(2), Polynomial(1)]``, the default, is Matern o Poly, whose inner
        map is affine. All but the last have to be differentiable.
    widths : int or list of int, optional
        Output dimensions of f_2, ..., f_L, outermost first; the number of features when not given.
    weights : list of array-like, optional
        Diagonals a of the matrix-valued kernels ``K_l diag(a)`` of f_2, ..., f_L; ones when not given.
    loss : {"hinge", "squared"}
        Hinge with an intercept, solved as a support vector machine (``C = 1 / (2 lam)``), or squares of differences
        from -1 and 1, in closed form and faster.
    lam, mu : float, list of float or None
        Weights of ``|f_1|^2`` and of ``sum_l |f_l|^2``. Lists are cross-validated; None is the list ``2^(1 - 2t)``
        for t = -2, 0, 2, ..., 10. The paper has t = 1, ..., 10: ``outer.concatenated_selection.PAPER_GRID``.
    cv : int, >= 2
        Number of folds.
    repulsion : float, >= 0
        The gamma of (12): keeps the images g(x_i) apart by ``gamma sum coth(|g(x_i) - g(x_j)|^2)``.
    n_restarts : int, >= 1
        Starts of the search: the identity and random inner maps. The best objective is kept.
    search_size : int, optional
        With more rows than this, norm weights and starts are searched on so many of them, and the best inner map is
        continued on all rows. None: always all.
    tol : float, > 0
        Relative gradient at which the answer counts as stationary.
    max_iter : int, >= 1
        Iterations per start.
    max_time : float, optional
        Seconds of the final search, after which the best answer so far is kept, with a warning.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Processes that share folds and starts.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Concatenated
        The learned deep kernel, usable in any kernel machine.
    solution_ : OuterSolution
        With the stationarity certificate; the problem is non-convex, so nothing says that no better answer exists.
    machine_ : OutermostFit
        Coefficients of the outermost layer on the training points.
    n_iter_ : int
        Iterations of all starts together.
    n_features_in_ : int
    lam_, mu_ : float
        The norm weights that were used.
    selection_ : Selection or None
        Validation risks of all pairs, when there was a choice.

    Notes
    -----
    Features should be of comparable scale: put a StandardScaler in front. The gradient of the hinge objective is
    exact at every point, by the envelope theorem.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from convexkernels import ConcatenatedKernelClassifier
    >>> X, y = make_moons(60, noise=0.1, random_state=0)
    >>> model = ConcatenatedKernelClassifier(lam=0.05, mu=0.01, n_restarts=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        layers: Sequence[Kernel] | None = None,
        *,
        widths: Any = None,
        weights: Any = None,
        loss: str = "hinge",
        lam: Any = None,
        mu: Any = None,
        cv: int = 5,
        repulsion: float = 0.0,
        n_restarts: int = 64,
        search_size: int | None = 400,
        tol: float = 1e-4,
        max_iter: int = 500,
        max_time: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.layers = layers
        self.widths = widths
        self.weights = weights
        self.loss = loss
        self.lam = lam
        self.mu = mu
        self.cv = cv
        self.repulsion = repulsion
        self.n_restarts = n_restarts
        self.search_size = search_size
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn all layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of two classes or more, numbers or text.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts.
        NotDifferentiableError
            When a kernel other than the innermost has no derivative.
        """
        if self.loss not in ("hinge", "squared"):
            raise InvalidInputError(f"loss must be 'hinge' or 'squared', got {self.loss!r}.")
        points, labels = self._table(X, y)
        try:
            check_classification_targets(labels)
        except ValueError as error:
            raise InvalidInputError(f"y must hold class labels: {error}") from error
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y holds one class only ({self.classes_.tolist()[0]!r}); two classes or more are needed."
            )
        if len(self.classes_) == 2:
            targets = np.where(codes == 1, 1.0, -1.0)
        else:
            targets = np.where(codes[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)
        make_loss = SquaredError if self.loss == "squared" else _hinge
        self._search(self._select(points, targets, make_loss, self.lam, self.mu, self.cv))
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Evaluate the learned machines.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins.
        """
        values = self._outputs(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,)."""
        values = self.decision_function(X)
        return self.classes_[(values > 0.0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]


def _price(lam: float) -> float:
    """The price C = 1 / (2 lam) of a support vector loss."""
    return 0.5 / check_number("lam", lam, low=0.0, open_low=True)


def _hinge(lam: float) -> Hinge:
    return Hinge(C=_price(lam))


def _epsilon_insensitive(epsilon: float, lam: float) -> EpsilonInsensitive:
    return EpsilonInsensitive(C=_price(lam), epsilon=epsilon)
