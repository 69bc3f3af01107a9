"""Regression with a spectral kernel that is learned."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from convexkernels.estimators.spectral_base import SpectralEstimator
from convexkernels.estimators.targets import NumberTargets
from convexkernels.exceptions import InvalidInputError
from convexkernels.spectral.backend import to_numpy
from convexkernels.spectral.losses import score_loss

__all__ = ["SpectralKernelRegressor"]


class SpectralKernelRegressor(MultiOutputMixin, RegressorMixin, SpectralEstimator):
    """Regression by W'phi(x) + c where the frequencies of phi, and so its kernel, are learned together with W.

    Automated spectral kernel learning (Li, Liu and Wang, AAAI 2020) and its ablations: least
    ``mean |W'phi(x) + c - y|^2 + lam1 penalty(W) + lam2 |phi(X)|_F^2``, equation (4), by mini-batch Adam from an exact
    warm start, with an exact last solve for W.

    Parameters
    ----------
    setting : {"ASKL", "NSKL", "SKL", "NSK", "SK"}
        Table 1 of the paper: stationary kernels (S) or not (NS), frequencies learned (L) or left as drawn, ``|W|_F^2``;
        ASKL is not stationary, learned, with ``|W|_*`` and ``|phi(X)|_F^2``.
    n_features : int, >= 1
        D: features of the map phi (pairs of features of the exact map psi).
    feature_map : {"phi", "psi", "printed"}
        As in :class:`Spectral`: one phase for both waves of a pair, exact features, or (6) as printed, with two phases.
    sigma : float, list of float or None
        Standard deviation of the frequencies that are drawn. None: from the data, by the closed-form leave-one-out risk
        of ridge regression on random features, before anything is trained. Of a list the three with the least such
        risks are cross-validated, together with lam1 and lam2.
    lam1 : float, list of float or None
        Weight of the norm of W in the exact last solve; training finds the frequencies with a weight of its own, not
        less than the least lam1. A list is cross-validated: one run of training serves all of it, and only the best
        third of the candidates (sigma, lam2) is trained further. None: by validation, along a path of ridges around
        the one that was chosen with sigma; from the folds of other lists where no rows are held out; else that ridge.
    lam2 : float, list of float or None
        Weight of ``|phi(X)|_F^2`` (setting "ASKL"), summed over all rows. None: 0.001 / rows.
    loss : {"squared"}
    batch_size : int or None
        Rows per step; None: 64, or all where there are fewer. The paper has 32. Larger ones are faster per epoch, 512
        four times.
    learning_rate : float or None
        First step of the frequencies relative to their size. None: 0.1.
    max_epochs : int, >= 0
        Passes over the data.
    schedule : {"cosine", "constant"}
        Whether steps shrink to nothing.
    early_stopping : bool
        Keep a part of the rows for validation, and the epoch that does best on them.
    validation_fraction : float in (0, 1)
    patience : int or None
        Epochs without improvement before training ends. None: never before `max_epochs`.
    cv : int, >= 2
        Folds behind the choice from lists, which uses at most 3,000 rows and 1,000 features, and half of the epochs;
        there the penalties weigh as much against the sum of the losses as they will on all rows.
    polish : bool
        Solve for W exactly in the end, on all rows, for the squared loss.
    dtype : {"float32", "float64"}
    device : str or None
        A device of PyTorch, for example "cuda". None: numpy, or the device of the tensors that are passed.
    max_time : float or None
        Seconds of training, after which the best weights so far are kept.
    random_state : int, RandomState or None
    verbose : bool
        Say something after every epoch.

    Attributes
    ----------
    kernel_ : Spectral
        The learned kernel; ``kernel_.transform`` are its features, as :meth:`transform`.
    initial_kernel_ : Spectral
        The kernel before anything was learned.
    solution_ : Solution
        With bounds on the optimum where the frequencies are fixed, else with a stationarity certificate: the problem is
        not convex, and nothing says that no better answer exists.
    history_ : tuple of Epoch
        Objective and validation score after every epoch.
    sigma_, lam1_, lam2_ : float
        What was used.
    width_ : Width or None
        Leave-one-out risks of the sigmas, when there was a choice.
    selection_ : Choice or None
        The cross-validation of lists: ``candidates`` (sigma, lam1, lam2), their ``scores`` on the folds, and the
        ``n_epochs`` after which they were given up.
    n_iter_ : int
        Steps.
    n_features_in_ : int
    center_, spread_ : ndarray of shape (n_outputs,)
        Targets are learned as ``(y - center_) / spread_``; the weights lam1 and lam2 belong to those.

    Notes
    -----
    Put a StandardScaler in front. Tensors of PyTorch are taken as they are, on any device, and then predictions are
    tensors, too.

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import SpectralKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> model = SpectralKernelRegressor(n_features=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def __init__(
        self,
        setting: str = "ASKL",
        *,
        n_features: int = 2000,
        feature_map: str = "phi",
        sigma: Any = None,
        lam1: Any = None,
        lam2: Any = None,
        loss: str = "squared",
        batch_size: int | None = None,
        learning_rate: float | None = None,
        max_epochs: int = 20,
        schedule: str = "cosine",
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        cv: int = 5,
        polish: bool = True,
        dtype: str = "float32",
        device: Any = None,
        max_time: float | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.setting = setting
        self.n_features = n_features
        self.feature_map = feature_map
        self.sigma = sigma
        self.lam1 = lam1
        self.lam2 = lam2
        self.loss = loss
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.schedule = schedule
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.cv = cv
        self.polish = polish
        self.dtype = dtype
        self.device = device
        self.max_time = max_time
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the kernel and the weights.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs share the kernel.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            Before any work starts.
        MissingTorchError
            When a device is asked for and PyTorch is not installed.
        """
        loss = score_loss(self.loss, ("squared",))
        points, target, backend = self._read(X, y)
        recipe = self._recipe(points.shape[0])
        self._is_flat = target.ndim == 1
        Y = target.reshape(len(target), -1).astype(np.float64)
        targets = NumberTargets.standard(Y, np.ones(len(Y)))
        self.center_, self.spread_ = targets.center, targets.spread
        self._learn(points, (Y - self.center_) / self.spread_, loss, recipe, None, backend)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Make one pass over some rows, on top of what has been learned.

        The first call chooses sigma, the warm start and the scale of targets from its rows, so it should see a few
        hundred of them.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_outputs)

        Returns
        -------
        self
        """
        if not hasattr(self, "solution_"):
            return self.fit(X, y)
        points = self._points(X)
        target = np.asarray(to_numpy(y), dtype=np.float64)
        Y = target.reshape(len(target), -1) if target.ndim else target
        if Y.shape != (points.shape[0], len(self.center_)) or not np.isfinite(Y).all():
            raise InvalidInputError(
                f"y must hold finite numbers, {len(self.center_)} for each of the {points.shape[0]} rows of X, "
                f"got shape {target.shape}."
            )
        self._learn_more(points, (Y - self.center_) / self.spread_)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted numbers, shape (n_samples,) or (n_samples, n_outputs); tensors where tensors come in."""
        scores = self._scores(X)
        if not isinstance(scores, np.ndarray):
            backend = self.solution_.problem.backend
            values = scores * backend.array(self.spread_) + backend.array(self.center_)
        else:
            values = scores * self.spread_ + self.center_
        return values[:, 0] if self._is_flat else values
