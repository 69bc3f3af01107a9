"""Estimators of numbers that learn a tessellated kernel."""

from __future__ import annotations

from typing import Any

from convexkernels.estimators.base import KernelRegressor
from convexkernels.families.base import Family
from convexkernels.families.box import UnitBox
from convexkernels.families.tessellated import Tessellated
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.least_squares import LeastSquares

__all__ = ["TessellatedRidge", "TessellatedSVR"]


class _TessellatedRegressor(KernelRegressor):
    """The family of all of them; matrices y have one machine per column and one kernel for all."""

    degree: int
    z_degree: int | None
    margin: float
    trace: float
    _multi_output = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _family(self, n_features: int) -> Family:
        return Tessellated(self.degree, self.z_degree, UnitBox(self.margin), self.trace)


class TessellatedSVR(_TessellatedRegressor):
    """Support vector regression that learns its kernel among the tessellated ones.

    Parameters
    ----------
    C : float, > 0
        Price of one unit of deviation beyond `epsilon`. What is large depends on the kernel, whose values grow with
        the volume ``(1 + 2 margin)^n_features`` of the box.
    epsilon : float, >= 0
        Deviation that costs nothing, in units of y.
    degree : int, >= 0
        Bound on the degree of the monomials of the kernel. Already degree 0 is universal.
    z_degree : int >= 0 or None
        Bound on the degree in the variable of integration; `degree` when None.
    margin : float, > 0
        Features are scaled to [0, 1]; the kernel integrates over the box ``[-margin, 1 + margin]^n_features``.
    trace : float, > 0
        Bound on the trace of the matrix P that is learned.
    intercept : bool
        Whether the machines have an intercept.
    tol : float, > 0
        Relative duality gap at which learning stops.
    max_iter : int
        Limit on the number of steps of the solver.
    max_time : float, optional
        Seconds after which the best kernel so far is kept, with its certificate and a warning.
    solver : str or solver object
        ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"frank-wolfe"`` or ``"conic"``.
    memory_limit : float, optional
        Bytes the matrices may take, checked before they are allocated; the free memory by default.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    kernel_ : Kernel
        The learned kernel on features as they were passed, a valid ``kernel=`` of scikit-learn's machines.
    solution_ : Solution
        With the certificate and the history.
    support_ : ndarray of int
        Rows of the training table that prediction uses.
    support_vectors_ : ndarray of shape (n_support, n_features_in_)
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Colbert and Peet (JMLR 2020), (10), with another loss. Features are scaled to [0, 1] by their range in the training
    table; constant ones are left out.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import TessellatedSVR
    >>> X, y = make_friedman1(150, random_state=0)
    >>> TessellatedSVR(C=1.0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        degree: int = 1,
        z_degree: int | None = 0,
        margin: float = 0.5,
        trace: float = 1.0,
        intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        solver: Any = "auto",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.degree = degree
        self.z_degree = z_degree
        self.margin = margin
        self.trace = trace
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.memory_limit = memory_limit
        self.verbose = verbose

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.C, self.epsilon, self.intercept)


class TessellatedRidge(_TessellatedRegressor):
    """Kernel ridge regression that learns its kernel among the tessellated ones.

    Parameters
    ----------
    lam : float, > 0
        Price of the squared norm against squared errors. What is small depends on the kernel, whose values grow with
        the volume ``(1 + 2 margin)^n_features`` of the box.
    degree : int, >= 0
        Bound on the degree of the monomials of the kernel. Already degree 0 is universal.
    z_degree : int >= 0 or None
        Bound on the degree in the variable of integration; `degree` when None.
    margin : float, > 0
        Features are scaled to [0, 1]; the kernel integrates over the box ``[-margin, 1 + margin]^n_features``.
    trace : float, > 0
        Bound on the trace of the matrix P that is learned.
    intercept : bool
        Whether the machines have an intercept.
    tol : float, > 0
        Relative duality gap at which learning stops.
    max_iter : int
        Limit on the number of steps of the solver.
    max_time : float, optional
        Seconds after which the best kernel so far is kept, with its certificate and a warning.
    solver : str or solver object
        ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"frank-wolfe"`` or ``"conic"``.
    memory_limit : float, optional
        Bytes the matrices may take, checked before they are allocated; the free memory by default.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    kernel_ : Kernel
        The learned kernel on features as they were passed, a valid ``kernel=`` of scikit-learn's machines.
    solution_ : Solution
        With the certificate and the history.
    support_ : ndarray of int
        Rows of the training table that prediction uses.
    support_vectors_ : ndarray of shape (n_support, n_features_in_)
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Colbert and Peet (JMLR 2020), (10), with another loss. Features are scaled to [0, 1] by their range in the training
    table; constant ones are left out.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import TessellatedRidge
    >>> X, y = make_friedman1(150, random_state=0)
    >>> TessellatedRidge(lam=1.0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        lam: float = 1.0,
        *,
        degree: int = 1,
        z_degree: int | None = 0,
        margin: float = 0.5,
        trace: float = 1.0,
        intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        solver: Any = "auto",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.lam = lam
        self.degree = degree
        self.z_degree = z_degree
        self.margin = margin
        self.trace = trace
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.memory_limit = memory_limit
        self.verbose = verbose

    def _loss(self) -> Loss:
        return LeastSquares(self.lam, self.intercept)
