"""Regression with a hierarchical Gaussian kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from convexkernels.estimators.hierarchical_base import HierarchicalEstimator
from convexkernels.estimators.table import read_table
from convexkernels.estimators.targets import NumberTargets
from convexkernels.exceptions import InvalidInputError
from convexkernels.outer.hierarchical_published import Schedule

__all__ = ["HierarchicalGaussianRegressor"]

Array = NDArray[np.float64]


class HierarchicalGaussianRegressor(RegressorMixin, HierarchicalEstimator):
    """Kernel ridge or support vector regression with a deep kernel whose weights are learned.

    Steinwart, Thomann and Schmid, "Learning with hierarchical Gaussian kernels". Features and targets are scaled to
    [-1, 1]; weights and lam minimise the risk of machines on rows they have not seen; the final machine is trained on
    all rows.

    Parameters
    ----------
    architecture : int, nested list, tuple of those, or "paper"
        Nodes on the first layer: 1 is an inhomogeneous Gaussian kernel (depth 1), more are trees of depth 2; or the
        tree itself, to any depth, with features (not counting constant ones) as leaves: ``[[0, 1], [[2], [0, 2]]]``. A
        tuple is cross-validated; "paper" is ``(1, 4, 6, 8, 10, 12, 16)``.
    subsets : {"all", "random"} or list of lists of int
        What the nodes of a numbered architecture see: all features, random halves, or groups in turn.
    loss : {"least_squares", "epsilon_insensitive"}
    epsilon : float, >= 0
        Deviation that costs nothing, as a share of half the range of y.
    lam : float, > 0
        Price of ``|f|^2`` against the sum of losses at the start of the search, which moves it.
    folds : "leave-one-out", int or None
        What the search judges weights by: every row by the machine that has not seen it, in closed form (least squares,
        the default there); a number of folds; or 1, a random third, the default otherwise.
    search : {"hypergradient", "published"}
        Exact gradients of that risk, or Algorithm 1 of the paper: annealing and gradient descent on three parts.
    search_size : int, optional
        Rows that every step of the hypergradient search draws: a third of them, at least 50 and at most 1,500, when not
        given. With no more rows than that, quasi-Newton steps on all of them.
    max_iter : int
        Steps of the hypergradient search.
    schedule : Schedule, optional
        Constants of the published search; those of the paper when not given.
    n_searches : int
        Independent searches; the functions of their machines are averaged.
    n_folds : int
        Folds for the choice between architectures.
    average_folds : bool
        Predict by the mean of the machines of these folds, as the paper does, instead of one trained on all rows.
    clip : bool
        Clip predictions to the range of the training targets.
    tol : float
        Relative gradient at which weights count as stationary.
    max_time : float, optional
        Seconds for all searches; the best weights so far are kept. Training the final machine comes on top.
    warm_start : bool
        Continue from the weights of the last fit where the tree is the same.
    checkpoint : path, optional
        A file with the weights so far, written every few seconds, and continued from when it is there; a file that is
        no checkpoint of this kernel is refused.
    random_state : int, RandomState or None
    verbose : bool
        Show where the search is and when it will be over.

    Attributes
    ----------
    kernel_ : Kernel
        The learned kernel, on features as they were passed.
    tree_ : HierarchicalGaussian
        The same on features scaled to [-1, 1].
    solution_, solutions_ : HierarchicalSolution, list of them
        Of the first search and of all.
    choice_ : ArchitectureChoice or None
    architecture_ : object
        The architecture that was used.
    feature_relevance_ : ndarray of shape (n_features,)
    n_iter_, n_features_in_ : int

    Notes
    -----
    A step of the search costs O(search_size^3); the final machine O(m^3) time
    and three m x m matrices.

    Examples
    --------
    >>> from convexkernels import HierarchicalGaussianRegressor
    >>> from convexkernels.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = HierarchicalGaussianRegressor(architecture=4, max_iter=30, random_state=0).fit(X, y)
    >>> bool(model.feature_relevance_[:5].sum() > 0.8)  # the other five say nothing
    True
    """

    def __init__(
        self,
        architecture: Any = 8,
        *,
        subsets: Any = "all",
        loss: str = "least_squares",
        epsilon: float = 0.05,
        lam: float = 0.1,
        folds: Any = None,
        search: str = "hypergradient",
        search_size: int | None = None,
        max_iter: int = 100,
        schedule: Schedule | None = None,
        n_searches: int = 1,
        n_folds: int = 5,
        average_folds: bool = False,
        clip: bool = True,
        tol: float = 1e-4,
        max_time: float | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.architecture = architecture
        self.subsets = subsets
        self.loss = loss
        self.epsilon = epsilon
        self.lam = lam
        self.folds = folds
        self.search = search
        self.search_size = search_size
        self.max_iter = max_iter
        self.schedule = schedule
        self.n_searches = n_searches
        self.n_folds = n_folds
        self.average_folds = average_folds
        self.clip = clip
        self.tol = tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the machine.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 that multiply the losses.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError, MemoryLimitError
            Before any work starts.
        """
        if self.loss not in ("least_squares", "epsilon_insensitive"):
            raise InvalidInputError(f"loss must be 'least_squares' or 'epsilon_insensitive', got {self.loss!r}.")
        self._check_parameters()
        table = read_table(self, X, y, sample_weight)
        targets = NumberTargets.by_range(table.y, clip=False)  # the functions themselves are clipped
        scaling, scaled = self._scaled(table, targets)
        self._learn(scaled.X, scaled.y[:, None], scaled.weights)
        self.scaling_, self.targets_ = scaling, targets
        return self

    def predict(self, X: Any) -> Array:
        """Predicted numbers for the rows of `X`, shape (n_samples,)."""
        values = self._outputs(X)
        return self.targets_.decoded(values)
