"""Regression with a spectral kernel that is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.estimators.base import KernelRegressor
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.spectral_base import SpectralEstimator
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import NumberTargets
from convexkernels.exceptions import InvalidInputError
from convexkernels.spectral.backend import is_tensor
from convexkernels.spectral.losses import ScoreLoss, score_loss

__all__ = ["SpectralKernelRegressor"]


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SpectralKernelRegressor(KernelRegressor, SpectralEstimator):
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
    folds : int, >= 2
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
    targets_ : Targets
        How targets are encoded; those of a regressor are learned as ``(y - center) / spread``.
    columns_ : Columns or None
        How categories and missing values became numbers; None where the table held numbers only.
    scaling_ : Scaling
        None: features are taken as they are.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        When the features have names that are all text.

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

    def _score_loss(self) -> ScoreLoss:
        return score_loss(self.loss, ("squared",))

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.standard(np.asarray(table.y, dtype=np.float64), table.weights)

    def _columns(self, t: Any, targets: Any) -> Any:
        return t.reshape(len(t), -1)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one pass over some rows, on top of what has been learned.

        The first call chooses sigma, the warm start and the scale of targets from its rows, so it should see a few
        hundred of them.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if not hasattr(self, "solution_"):
            return self.fit(X, y, sample_weight)
        table = self._rows(X, y, sample_weight)
        targets: Any = self.targets_
        shape = targets.center.shape
        if table.y.shape[1:] != shape or not np.isfinite(table.y).all():
            raise InvalidInputError(
                f"y must hold finite numbers, of shape {shape} for each of the rows of X, got shape {np.shape(y)}."
            )
        self._learn_more(self.targets_.encoded(table))
        return self

    def predict(self, X: Any) -> Any:
        """Predicted numbers, shape (n_samples,) or (n_samples, n_outputs); tensors where tensors come in."""
        if not is_tensor(X):
            return super().predict(X)
        targets: Any = self.targets_
        scores, backend = self._values(X), self.solution_.problem.backend
        return targets.decisions(scores) * backend.array(targets.spread) + backend.array(targets.center)
