"""Kernels of this library as covariance functions of scikit-learn's Gaussian processes."""

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter
from sklearn.gaussian_process.kernels import Kernel as CovarianceFunction

from convexkernels.arrays import Array


class Covariance(CovarianceFunction):  # type: ignore[misc]
    """``variance * kernel(x, y)``, whose one hyperparameter ``theta`` is the logarithm of the variance.

    A covariance function of scikit-learn: sums and products with others work, for example with a ``WhiteKernel``, and
    ``GaussianProcessRegressor`` finds the variance of greatest likelihood.

    Parameters
    ----------
    kernel : Kernel
    variance : float, > 0
    variance_bounds : pair of float, or "fixed"
        The range that the optimizer searches.
    """

    def __init__(self, kernel: Any, variance: float = 1.0, variance_bounds: Any = (1e-5, 1e5)) -> None:
        self.kernel, self.variance, self.variance_bounds = kernel, variance, variance_bounds

    @property
    def hyperparameter_variance(self) -> Hyperparameter:
        """The hyperparameter as scikit-learn describes it."""
        return Hyperparameter("variance", "numeric", self.variance_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """The covariances of all pairs of points, and their derivative in theta where it is asked for.

        Returns
        -------
        K : ndarray of shape (n_samples_X, n_samples_Y)
        gradient : ndarray of shape (n_samples_X, n_samples_X, n_free)
            Only with ``eval_gradient``; n_free is 0 where the variance is fixed.
        """
        if eval_gradient and Y is not None:
            raise ValueError("the gradient is that of the matrix of one table; pass Y=None with eval_gradient=True.")
        K = self.variance * self.kernel(X, Y)
        if not eval_gradient:
            return K
        # d/d log(variance) of variance * k is the matrix itself.
        return K, np.empty((*K.shape, 0)) if self.hyperparameter_variance.fixed else K[:, :, None].copy()

    def diag(self, X: Any) -> Array:
        """Variances at the rows of `X`, shape (n_samples,)."""
        return np.asarray(self.variance * self.kernel.diag(X))

    def is_stationary(self) -> bool:
        """False: nothing is known of a learned kernel."""
        return False

    def __repr__(self) -> str:
        return f"{self.variance:.3g} * {self.kernel!r}"
