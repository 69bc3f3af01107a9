"""What the concatenated estimators share: parameters, the search, and the inner images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels import Kernel, Matern, Polynomial
from convexkernels.outer.concatenated import ConcatenatedLearning
from convexkernels.outer.concatenated_selection import DEFAULT_GRID, select_weights
from convexkernels.validation import check_number

__all__ = ["ConcatenatedEstimator", "price"]

Array = NDArray[np.float64]


class ConcatenatedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the concatenated estimators; subclasses say which loss is minimized and how targets are encoded."""

    layers: Sequence[Kernel] | None
    widths: Any
    weights: Any
    repulsion: float
    n_restarts: int
    search_size: int | None
    tol: float
    max_iter: int
    max_time: float | None
    random_state: Any
    n_jobs: int | None
    verbose: bool

    def _table(self, X: Any, y: Any, **options: Any) -> tuple[Array, NDArray[Any]]:
        try:
            return validate_data(self, X, y, dtype=np.float64, **options)
        except ValueError as error:
            raise InvalidInputError(str(error)) from error

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        try:
            return validate_data(self, X, reset=False, dtype=np.float64)
        except ValueError as error:
            raise InvalidInputError(str(error)) from error

    def _problem(self, X: Array, Y: Array, loss: Any) -> ConcatenatedLearning:
        layers = [Matern(order=2), Polynomial(degree=1)] if self.layers is None else list(self.layers)
        options = {"widths": self.widths, "weights": self.weights, "repulsion": self.repulsion}
        return ConcatenatedLearning(layers, loss, X, Y, **options)

    def _select(
        self, X: Array, Y: Array, make_loss: Callable[[float], Any], lam: Any, mu: Any, cv: int
    ) -> ConcatenatedLearning:
        """State the problem with its norm weights, cross-validated where there is more than one."""
        lams, mus = _candidates("lam", lam), _candidates("mu", mu)
        problem = self._problem(X, Y, make_loss(lams[0])).with_parameters(make_loss(lams[0]), mus[0])
        self.selection_ = None
        if len(lams) * len(mus) > 1:
            self.selection_ = select_weights(
                problem.sampled(self.search_size, self.random_state),
                make_loss,
                lams,
                mus,
                n_splits=cv,
                n_restarts=min(self.n_restarts, 8),
                random_state=self.random_state,
                n_jobs=self.n_jobs,
            )
            lams, mus = [self.selection_.lam], [self.selection_.mu]
        self.lam_, self.mu_ = float(lams[0]), float(mus[0])
        return problem.with_parameters(make_loss(self.lam_), self.mu_)

    def _search(self, problem: ConcatenatedLearning) -> None:
        """Solve, and keep what prediction needs."""
        self.solution_ = problem.solve(
            n_restarts=self.n_restarts,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            progress=bool(self.verbose),
            search_size=self.search_size,
        )
        self.kernel_ = self.solution_.kernel
        self.machine_ = problem.machine(self.solution_.point)
        self.n_iter_ = max(self.solution_.n_iter, 1)
        self._n_features_out = problem.stack.widths[0]

    def _outputs(self, X: Any) -> Array:
        """Values of the learned functions, shape (n_samples, n_outputs)."""
        points = self._points(X)
        return self.machine_.predict(self.kernel_(points, self.solution_.problem.X))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Inner images g(x) = f_2 o ... o f_L (x), on which the outermost kernel machine acts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, width of f_2)
        """
        return self.kernel_.images(self._points(X))


def price(lam: float) -> float:
    """The price C = 1 / (2 lam) of a support vector loss."""
    return 0.5 / check_number("lam", lam, low=0.0, open_low=True)


def _candidates(name: str, value: Any) -> Sequence[float]:
    """The list of values that a norm-weight parameter stands for; None is the default grid."""
    if value is None:
        return DEFAULT_GRID
    if np.ndim(value) == 0:
        return [value]
    if len(value) == 0:
        raise InvalidInputError(f"{name} must be None, a number > 0 or a list of them, got {value!r}.")
    return list(value)
