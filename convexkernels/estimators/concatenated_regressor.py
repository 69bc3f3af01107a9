"""Regression by a concatenation of functions from reproducing kernel Hilbert spaces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

from convexkernels.estimators.concatenated_base import price
from convexkernels.estimators.concatenated_numbers import ConcatenatedNumbers
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels import Kernel
from convexkernels.losses import EpsilonInsensitive
from convexkernels.outer.outermost import SquaredError

__all__ = ["ConcatenatedKernelRegressor"]


class ConcatenatedKernelRegressor(ConcatenatedNumbers):
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
    targets_ : NumberTargets
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


def _epsilon_insensitive(epsilon: float, lam: float) -> EpsilonInsensitive:
    return EpsilonInsensitive(C=price(lam), epsilon=epsilon)
