"""Classification with a spectral kernel that is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from convexkernels.estimators.base import KernelClassifier
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.spectral_base import SpectralEstimator
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets
from convexkernels.exceptions import InvalidInputError
from convexkernels.spectral.backend import is_tensor, to_numpy
from convexkernels.spectral.losses import ScoreLoss, score_loss

__all__ = ["SpectralKernelClassifier"]


def _gives_probabilities(estimator: SpectralKernelClassifier) -> bool:
    return estimator.loss == "logistic"


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SpectralKernelClassifier(KernelClassifier, SpectralEstimator):
    """Classification by W'phi(x) + c where the frequencies of phi, and so its kernel, are learned together with W.

    Automated spectral kernel learning (Li, Liu and Wang, AAAI 2020) and its ablations: least
    ``mean loss + lam1 penalty(W) + lam2 |phi(X)|_F^2``, equation (4), by mini-batch Adam from an exact warm start.

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
        Weight of the norm of W. A list is cross-validated: all candidates are trained for some epochs, the best third
        goes on, and nothing starts again from zero. None: from the ridge that was chosen with sigma. With the squared
        loss it weighs the exact last solve, as in :class:`SpectralKernelRegressor`.
    lam2 : float, list of float or None
        Weight of ``|phi(X)|_F^2`` (setting "ASKL"), summed over all rows. None: 0.001 / rows.
    loss : {"logistic", "hinge", "squared"}
        ``hinge`` is the margin loss of the paper, over all classes at once.
    batch_size : int or None
        Rows per step; None: 64, or all where there are fewer. The paper has 32. Larger ones are faster per epoch, 512
        four times.
    learning_rate : float or None
        First step of the frequencies relative to their size. None: 0.03, for the squared loss 0.1.
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
    {parameters}
    verbose : bool
        Say something after every epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
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
    Put a StandardScaler in front. Tensors of PyTorch are taken as they are, on any device, and then scores and features
    are tensors, too; without them PyTorch is not needed. The learned function is the best one on the validation rows
    (the last one, when it is not worse by more than chance).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from convexkernels import SpectralKernelClassifier
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = SpectralKernelClassifier(n_features=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    loss: str = "logistic"

    def _score_loss(self) -> ScoreLoss:
        return score_loss(self.loss)

    def _targets_of(self, table: TrainingTable) -> ClassTargets:
        announced = getattr(self, "_announced", None)
        if announced is None:
            return super()._targets_of(table)
        totals = [table.weights[table.y == label].sum() for label in announced]
        return ClassTargets.of_classes(announced, np.array(totals), self.class_weight)

    def _columns(self, t: Any, targets: Any) -> Any:
        return self._score_loss().targets_of(t, len(targets.classes))

    def _codes(self, Y: Any) -> Any:
        codes = (Y[:, 0] > 0.0).astype(np.intp) if Y.shape[1] == 1 else Y.argmax(axis=1)
        return codes if len(np.unique(codes)) == max(2, Y.shape[1]) else None

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over some rows, on top of what has been learned.

        The first call chooses sigma and the warm start from its rows, so it should see a few hundred of them.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
        y : array-like or tensor of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come; needed in the first call where its rows do not have all of them.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            For labels that are not among the classes.
        """
        labels = np.unique(to_numpy(y))
        if not hasattr(self, "solution_"):
            known = labels if classes is None else np.unique(to_numpy(classes))
            _check_known(labels, known)
            self._announced = known
            try:
                return self.fit(X, y, sample_weight)
            finally:
                del self._announced
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise InvalidInputError(
                f"classes are {np.unique(classes).tolist()}, but the first call had {self.classes_.tolist()}."
            )
        _check_known(labels, self.classes_)
        self._learn_more(self.targets_.encoded(self._rows(X, y, sample_weight)))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,); tensors where tensors come in and labels are numbers."""
        values = self.decision_function(X)
        labels = self.targets_.decoded(np.asarray(to_numpy(values)))
        if is_tensor(X) and labels.dtype.kind in "biuf":
            return self.solution_.problem.backend.xp.asarray(labels, device=values.device)
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, shape (n_samples, n_classes): what the logistic loss fits."""
        scores = np.asarray(to_numpy(self._values(X)), dtype=np.float64)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)


def _check_known(labels: NDArray[Any], known: NDArray[Any]) -> None:
    """Refuse labels that have not been announced."""
    unseen = np.setdiff1d(labels, known)
    if unseen.size:
        raise InvalidInputError(
            f"y holds the class {unseen.tolist()[0]!r}, which is not among the classes {known.tolist()}; name "
            "all of them in the first call: partial_fit(X, y, classes=...)."
        )
