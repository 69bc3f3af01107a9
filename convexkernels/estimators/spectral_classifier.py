"""Classification with a spectral kernel that is learned."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from convexkernels.estimators.spectral_base import SpectralEstimator
from convexkernels.estimators.targets import ClassTargets
from convexkernels.exceptions import InvalidInputError
from convexkernels.spectral.backend import is_tensor, to_numpy
from convexkernels.spectral.losses import score_loss

__all__ = ["SpectralKernelClassifier"]


def _gives_probabilities(estimator: SpectralKernelClassifier) -> bool:
    return estimator.loss == "logistic"


class SpectralKernelClassifier(ClassifierMixin, SpectralEstimator):
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

    def __init__(
        self,
        setting: str = "ASKL",
        *,
        n_features: int = 2000,
        feature_map: str = "phi",
        sigma: Any = None,
        lam1: Any = None,
        lam2: Any = None,
        loss: str = "logistic",
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
        y : array-like or tensor of shape (n_samples,)
            Labels of two classes or more, numbers or text.

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
        loss = score_loss(self.loss)
        points, labels, backend = self._read(X, y)
        recipe = self._recipe(points.shape[0])
        self.classes_ = classes = ClassTargets.of_rows(labels, np.ones(len(labels))).classes
        codes = np.searchsorted(classes, labels)
        self._learn(points, loss.targets_of(codes, len(classes)), loss, recipe, codes, backend)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Make one pass over some rows, on top of what has been learned.

        The first call chooses sigma and the warm start from its rows, so it should see a few hundred of them.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)
        y : array-like or tensor of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come; needed in the first call where its rows do not have all of them.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            For labels that are not among the classes.
        """
        loss = score_loss(self.loss)
        is_first = not hasattr(self, "solution_")
        if is_first:
            points, labels, backend = self._read(X, y)
            recipe = self._recipe(points.shape[0])
        else:
            points = self._points(X)
            labels = np.asarray(to_numpy(y))
            if labels.shape != (points.shape[0],):
                raise InvalidInputError(f"y has shape {labels.shape}, but X has {points.shape[0]} rows.")
        known = self.classes_ if not is_first else np.unique(labels if classes is None else np.asarray(classes))
        if not is_first and classes is not None and not np.array_equal(np.unique(classes), known):
            raise InvalidInputError(
                f"classes are {np.unique(classes).tolist()}, but the first call had {known.tolist()}."
            )
        unseen = np.setdiff1d(labels, known)
        if unseen.size:
            raise InvalidInputError(
                f"y holds the class {unseen.tolist()[0]!r}, which is not among the classes {known.tolist()}; name "
                "all of them in the first call: partial_fit(X, y, classes=...)."
            )
        if len(known) < 2:
            raise InvalidInputError(f"y holds one class only ({known.tolist()[0]!r}); name all: classes=[...].")
        codes = np.searchsorted(known, labels)
        Y = loss.targets_of(codes, len(known))
        if is_first:
            self.classes_ = known
            self._learn(points, Y, loss, recipe, codes if len(np.unique(codes)) == len(known) else None, backend)
        else:
            self._learn_more(points, Y)
        return self

    def decision_function(self, X: Any) -> Any:
        """Evaluate the learned function.

        Parameters
        ----------
        X : array-like or tensor of shape (n_samples, n_features)

        Returns
        -------
        array or tensor of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values speak for ``classes_[1]``. More: one column per class, the largest wins.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,); tensors where tensors come in and labels are numbers."""
        values = self.decision_function(X)
        codes = to_numpy((values > 0.0) if values.ndim == 1 else values.argmax(1)).astype(np.intp)
        labels = self.classes_[codes]
        if is_tensor(X) and labels.dtype.kind in "biuf":
            return self.solution_.problem.backend.xp.asarray(labels, device=values.device)
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, shape (n_samples, n_classes): what the logistic loss fits."""
        scores = np.asarray(to_numpy(self._scores(X)), dtype=np.float64)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)
