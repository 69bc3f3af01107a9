"""Classification by a concatenation of functions from reproducing kernel Hilbert spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from convexkernels.estimators.concatenated_base import ConcatenatedEstimator, price
from convexkernels.estimators.targets import ClassTargets
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels import Kernel
from convexkernels.losses import Hinge
from convexkernels.outer.outermost import SquaredError

__all__ = ["ConcatenatedKernelClassifier"]


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
        self.targets_ = ClassTargets.of_rows(labels, np.ones(len(labels)))
        self.classes_ = self.targets_.classes
        targets = self.targets_.expanded(np.searchsorted(self.classes_, labels))
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
        return self.targets_.decisions(values)

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,)."""
        values = self._outputs(X)
        return self.targets_.decoded(values)


def _hinge(lam: float) -> Hinge:
    return Hinge(C=price(lam))
