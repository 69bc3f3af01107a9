"""Estimators whose spectral kernel is learned."""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from convexkernels.arrays import Array, Index
from convexkernels.backend import is_tensor, to_numpy
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.intervals import as_unseen
from convexkernels.estimators.spectral.base import SpectralEstimator
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import ClassTargets, NumberTargets
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.exceptions import InvalidInputError
from convexkernels.spectral.losses import ScoreLoss, score_loss


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SpectralKernelClassifier(KernelClassifier, SpectralEstimator):
    """Classification by W'phi(x) + c where the frequencies of phi, and so its kernel, are learned together with W.

    Automated spectral kernel learning (Li, Liu and Wang, AAAI 2020) and its ablations: least
    ``mean loss + lam1 penalty(W) + lam2 |phi(X)|_F^2``, equation (4), by mini-batch Adam from an exact start.

    Parameters
    ----------
    lam1 : float, list of float or None
        Weight of the norm of W. A list is cross-validated: all candidates are trained for some epochs, the best third
        goes on, and nothing starts again from zero. None: from the ridge that was chosen with sigma. With the squared
        loss it weighs the exact final solve, as in :class:`SpectralKernelRegressor`.
    loss : {"logistic", "hinge", "least_squares"}
        ``"logistic"``, the default, is the cross-entropy over all classes; the paper does not have it. ``"hinge"`` is
        the margin loss of the paper, over all classes at once: ``max(0, 1 - (f_y - max of the other f))``.
        ``"least_squares"`` fits 0 and 1 (-1 and 1 for two classes), with an exact final solve for W.
    {parameters}

    {Attributes: classes, spectral}
    {Notes: spectral_notes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from convexkernels import SpectralKernelClassifier
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = SpectralKernelClassifier(n_components=100, random_state=0).fit(X, y)
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

    def partial_fit(  # type: ignore[override]
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """As for a regressor, with the classes as scikit-learn asks for them.

        Parameters
        ----------
        X, y, sample_weight
            Rows to pass over.
        classes : array-like of shape (n_classes,), optional
            All labels that will ever come; needed in the first call where its rows do not have all of them.

        Raises
        ------
        InvalidInputError
            For labels that are not among the classes.
        """
        labels = np.unique(to_numpy(y))
        announced = None if classes is None else np.unique(to_numpy(classes))
        known = self.classes_ if hasattr(self, "solution_") else labels if announced is None else announced
        if announced is not None and not np.array_equal(announced, known):
            raise InvalidInputError(f"classes are {announced.tolist()}, but the first call had {known.tolist()}.")
        unseen = np.setdiff1d(labels, known)
        if unseen.size:
            raise InvalidInputError(
                f"y holds the class {unseen.tolist()[0]!r}, which is not among the classes {known.tolist()}; name "
                "all of them in the first call: partial_fit(X, y, classes=...)."
            )
        self._announced = known
        goes_on = hasattr(self, "solution_")
        try:
            super().partial_fit(X, y, sample_weight)
            if goes_on:  # functions have moved, and the rows that a read-out was found by are not kept
                self.targets_ = replace(cast(ClassTargets, self.targets_), read_out=None)
            return self
        finally:
            del self._announced

    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels of the rows of `X`, shape (n_samples,); tensors where tensors come in and labels are numbers."""
        values = self._values(X)
        labels = self.targets_.decoded(np.asarray(to_numpy(values)))
        if is_tensor(X) and labels.dtype.kind in "biuf":
            return self.solution_.problem.backend.xp.asarray(labels, device=values.device)
        return labels


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SpectralKernelRegressor(KernelRegressor, SpectralEstimator):
    """Regression by W'phi(x) + c where the frequencies of phi, and so its kernel, are learned together with W.

    Automated spectral kernel learning (Li, Liu and Wang, AAAI 2020) and its ablations: least
    ``mean |W'phi(x) + c - y|^2 + lam1 penalty(W) + lam2 |phi(X)|_F^2``, equation (4), by mini-batch Adam from an exact
    start, with an exact final solve for W.

    Parameters
    ----------
    lam1 : float, list of float or None
        Weight of the norm of W in the exact final solve; training finds the frequencies with a weight of its own, not
        less than the least lam1. A list is cross-validated: one run of training serves all of it, and only the best
        third of the candidates (sigma, lam2) is trained further. None: by validation, along a path of ridges from
        the one that was chosen with sigma upwards (around 1e-5 where sigma is given); from the folds of other lists
        where no rows are held out; else that ridge.
    loss : {"least_squares"}
    {parameters}

    {Attributes: spectral}

    Notes
    -----
    Targets are learned as ``(y - center) / spread``, with mean 0 and variance 1. Intervals are longer where rows that
    validated the training, on which no frequency was trained, have clearly larger residuals. {spectral_notes}

    Examples
    --------
    >>> import numpy as np
    >>> from convexkernels import SpectralKernelRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = np.sin(5 * X[:, 0]) * X[:, 1]
    >>> model = SpectralKernelRegressor(n_components=100, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    def _score_loss(self) -> ScoreLoss:
        return score_loss(self.loss, ("least_squares",))

    def _targets_of(self, table: TrainingTable) -> NumberTargets:
        return NumberTargets.standard(np.asarray(table.y, dtype=np.float64), table.weights)

    def _columns(self, t: Any, targets: Any) -> Any:
        return t.reshape(len(t), -1)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        table, targets = super()._rows(X, y, sample_weight), self.targets_
        assert isinstance(targets, NumberTargets)
        if table.y.shape[1:] != targets.center.shape:
            raise InvalidInputError(
                f"y has shape {table.y.shape}, but the first call had rows of shape {targets.center.shape}."
            )
        return table

    def _levelled(self, residuals: Array, rows: Index) -> Array:
        # After `partial_fit` the problem has other rows, and those that were held out are not places among them.
        if self._merged_rows is None or not self.solution_.problem.learned:
            return residuals
        return as_unseen(residuals, np.isin(rows, self._held_rows))

    def predict(self, X: Any) -> Any:
        """Predicted numbers, shape (n_samples,) or (n_samples, n_outputs); tensors where tensors come in."""
        if not is_tensor(X):
            return super().predict(X)
        targets: Any = self.targets_
        scores, backend = self._values(X), self.solution_.problem.backend
        return targets.shaped(scores) * backend.array(targets.spread) + backend.array(targets.center)
