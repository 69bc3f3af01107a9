"""Estimators that learn the weights of candidate kernels."""

from __future__ import annotations

from typing import Any

from convexkernels.estimators.base import KernelClassifier, KernelRegressor
from convexkernels.estimators.multiple_kernel_base import CandidateLearner
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares

__all__ = ["MultipleKernelRidge", "MultipleKernelSVC", "MultipleKernelSVR"]


class MultipleKernelSVC(CandidateLearner, KernelClassifier):
    """Support vector classifier that learns a convex combination of candidate kernels.

    Parameters
    ----------
    kernels : list, ndarray of shape (l, N, N), "precomputed" or None
        Candidates: kernels, or ``(name, kernel, columns)`` with columns given as indices, a slice, a mask or, for a
        DataFrame, names. An array holds Gram matrices of N objects; X is then a column of their numbers, which
        goes through cross-validation as any table. With "precomputed", `fit` takes a stack (l, m, m) in place of X and
        `predict` one of shape (l, n_new, m). None: Gaussians and polynomials on all and on single standardised
        features, see :func:`convexkernels.kernel_library`.
    C : float, > 0
        Price of one unit of slack.
    normalize : {"mean", "trace", "cosine", "none"}
        Every kernel gets mean diagonal 1, trace 1, unit diagonal, or stays as it is.
    center : bool
        Whether the training points get mean 0 in the feature space of every kernel.
    intercept : bool
        Whether the machines have an intercept.
    class_weight : None, "balanced" or dict
        Factors of C for the classes.
    tol : float, > 0
        Relative duality gap at which learning stops.
    max_iter : int
        Limit on the number of steps of the solver.
    max_time : float, optional
        Seconds after which the best kernel so far is kept, with its certificate and a warning.
    solver : str or solver object
        ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"reduced-gradient"`` (SimpleMKL),
        ``"frank-wolfe"``, ``"conic"``.
    memory_limit : float, optional
        Bytes the matrices may take; they are kept in float32, or made anew when needed, where float64 does not fit.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
    kernel_names_ : list of str
    kernel_ : Kernel
        The learned kernel, normalisation included, a valid ``kernel=`` of scikit-learn's machines.
    solution_ : Solution
        With the certificate and the history.
    support_ : ndarray of int
        Rows of the training table that prediction uses.
    support_vectors_ : ndarray of shape (n_support, n_features_in_)
    n_iter_ : int
    n_features_in_ : int
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6). With more than two
    classes there is one machine per class, against the rest, and one set of weights for all. The optimum is
    certified by its duality gap, whatever the solver.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from convexkernels import Gaussian, MultipleKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [(f"feature {j}", Gaussian(1.0), [j]) for j in range(4)]
    >>> model = MultipleKernelSVC(kernels, C=10.0).fit(X, y)
    >>> len(model.weights_), model.score(X, y) > 0.9
    (4, True)
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        normalize: str = "mean",
        center: bool = False,
        intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        solver: Any = "auto",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.normalize = normalize
        self.center = center
        self.intercept = intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.memory_limit = memory_limit
        self.verbose = verbose

    def _loss(self) -> Loss:
        return Hinge(self.C, self.intercept)


class MultipleKernelSVR(CandidateLearner, KernelRegressor):
    """Support vector regression that learns a convex combination of candidate kernels.

    Parameters
    ----------
    kernels : list, ndarray of shape (l, N, N), "precomputed" or None
        Candidates: kernels, or ``(name, kernel, columns)`` with columns given as indices, a slice, a mask or, for a
        DataFrame, names. An array holds Gram matrices of N objects; X is then a column of their numbers, which
        goes through cross-validation as any table. With "precomputed", `fit` takes a stack (l, m, m) in place of X and
        `predict` one of shape (l, n_new, m). None: Gaussians and polynomials on all and on single standardised
        features, see :func:`convexkernels.kernel_library`.
    C : float, > 0
        Price of one unit of deviation beyond `epsilon`.
    epsilon : float, >= 0
        Deviation that costs nothing, in units of y.
    normalize : {"mean", "trace", "cosine", "none"}
        Every kernel gets mean diagonal 1, trace 1, unit diagonal, or stays as it is.
    center : bool
        Whether the training points get mean 0 in the feature space of every kernel.
    intercept : bool
        Whether the machines have an intercept.
    tol : float, > 0
        Relative duality gap at which learning stops.
    max_iter : int
        Limit on the number of steps of the solver.
    max_time : float, optional
        Seconds after which the best kernel so far is kept, with its certificate and a warning.
    solver : str or solver object
        ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"reduced-gradient"`` (SimpleMKL),
        ``"frank-wolfe"``, ``"conic"``.
    memory_limit : float, optional
        Bytes the matrices may take; they are kept in float32, or made anew when needed, where float64 does not fit.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
    kernel_names_ : list of str
    kernel_ : Kernel
        The learned kernel, normalisation included, a valid ``kernel=`` of scikit-learn's machines.
    solution_ : Solution
        With the certificate and the history.
    support_ : ndarray of int
        Rows of the training table that prediction uses.
    support_vectors_ : ndarray of shape (n_support, n_features_in_)
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6). A matrix y has one
    machine per column and one set of weights for all. The optimum is
    certified by its duality gap, whatever the solver.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import MultipleKernelSVR
    >>> X, y = make_friedman1(100, random_state=0)
    >>> MultipleKernelSVR(C=10.0).fit(X, y).score(X, y) > 0.9
    True
    """

    _multi_output = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        normalize: str = "mean",
        center: bool = False,
        intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        solver: Any = "auto",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernels = kernels
        self.C = C
        self.epsilon = epsilon
        self.normalize = normalize
        self.center = center
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.memory_limit = memory_limit
        self.verbose = verbose

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.C, self.epsilon, self.intercept)


class MultipleKernelRidge(CandidateLearner, KernelRegressor):
    """Kernel ridge regression that learns a convex combination of candidate kernels.

    Parameters
    ----------
    kernels : list, ndarray of shape (l, N, N), "precomputed" or None
        Candidates: kernels, or ``(name, kernel, columns)`` with columns given as indices, a slice, a mask or, for a
        DataFrame, names. An array holds Gram matrices of N objects; X is then a column of their numbers, which
        goes through cross-validation as any table. With "precomputed", `fit` takes a stack (l, m, m) in place of X and
        `predict` one of shape (l, n_new, m). None: Gaussians and polynomials on all and on single standardised
        features, see :func:`convexkernels.kernel_library`.
    lam : float, > 0
        Price of the squared norm against squared errors; ``alpha`` of scikit-learn's ``KernelRidge``.
    normalize : {"mean", "trace", "cosine", "none"}
        Every kernel gets mean diagonal 1, trace 1, unit diagonal, or stays as it is.
    center : bool
        Whether the training points get mean 0 in the feature space of every kernel.
    intercept : bool
        Whether the machines have an intercept.
    tol : float, > 0
        Relative duality gap at which learning stops.
    max_iter : int
        Limit on the number of steps of the solver.
    max_time : float, optional
        Seconds after which the best kernel so far is kept, with its certificate and a warning.
    solver : str or solver object
        ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"reduced-gradient"`` (SimpleMKL),
        ``"frank-wolfe"``, ``"conic"``.
    memory_limit : float, optional
        Bytes the matrices may take; they are kept in float32, or made anew when needed, where float64 does not fit.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    weights_ : ndarray of shape (l,)
        Weights of the candidates, >= 0, with sum 1: one set for all classes or outputs.
    kernel_names_ : list of str
    kernel_ : Kernel
        The learned kernel, normalisation included, a valid ``kernel=`` of scikit-learn's machines.
    solution_ : Solution
        With the certificate and the history.
    support_ : ndarray of int
        Rows of the training table that prediction uses.
    support_vectors_ : ndarray of shape (n_support, n_features_in_)
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    Rakotomamonjy, Bach, Canu and Grandvalet (JMLR 2008); Colbert and Peet (JMLR 2020), (6). A matrix y has one
    machine per column, which share one factorisation, and one set of weights for all. The optimum is
    certified by its duality gap, whatever the solver.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import MultipleKernelRidge
    >>> X, y = make_friedman1(100, random_state=0)
    >>> MultipleKernelRidge(lam=0.1).fit(X, y).score(X, y) > 0.9
    True
    """

    _multi_output = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __init__(
        self,
        kernels: Any = None,
        *,
        lam: float = 1.0,
        normalize: str = "mean",
        center: bool = False,
        intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        solver: Any = "auto",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.kernels = kernels
        self.lam = lam
        self.normalize = normalize
        self.center = center
        self.intercept = intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.memory_limit = memory_limit
        self.verbose = verbose

    def _loss(self) -> Loss:
        return LeastSquares(self.lam, self.intercept)
