"""Interpolation by a concatenation of functions from reproducing kernel Hilbert spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from convexkernels.estimators.concatenated_numbers import ConcatenatedNumbers
from convexkernels.kernels import Kernel
from convexkernels.outer.outermost import Interpolation

__all__ = ["ConcatenatedKernelInterpolator"]


class ConcatenatedKernelInterpolator(ConcatenatedNumbers):
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
    targets_ : NumberTargets
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
