"""What can be read from a fitted estimator: its kernel, what its functions answer to, values at rows left out."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.backend import to_numpy
from convexkernels.estimators.left_out import LeftOut, left_out_of_kernel
from convexkernels.estimators.relevance import effective_rank, relevance, spread_rows
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import MemoryLimitError, MissingAttributeError
from convexkernels.kernels.base import Kernel
from convexkernels.losses.least_squares import LeastSquares

# Rows that the effective rank of a kernel is measured on.
RANK_ROWS = 1000


class Learned:
    """Attributes that are computed from the solution when they are first asked for, and kept with it."""

    solution_: Any
    scaling_: Scaling
    targets_: Targets
    feature_labels_: list[str]
    # Of the rows that were passed with a weight > 0: the row of the problem that each became, and the weights.
    _merged_rows: tuple[Index, Array] | None

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _evaluate(self, points: Array) -> Array:
        """Values of the learned functions at scaled points."""

    def _left_out(self, whole: bool = False) -> LeftOut:
        """Values at training rows, or at a sample of many, by functions with the learned kernel without the row."""
        return left_out_of_kernel(self.solution_, whole)

    @property
    def _is_least_squares(self) -> bool:
        """Whether rows are left out in closed form."""
        return isinstance(self.solution_.problem.loss, LeastSquares)

    def _training_points(self) -> Array:
        """Scaled points that were learned from."""
        return np.asarray(to_numpy(self.solution_.problem.X), dtype=np.float64)

    # -- what is read -------------------------------------------------------------------------------

    def _derived(self, name: str, compute: Callable[[], Any]) -> Any:
        """What is computed from the solution when it is first asked for, and kept with it."""
        check_is_fitted(self)
        known: dict[str, Any] = self.solution_.derived
        if name not in known:
            known[name] = compute()
        return known[name]

    @property
    def kernel_(self) -> Kernel:
        """The learned kernel on features as they were passed, a valid ``kernel=`` of scikit-learn's SVC."""
        check_is_fitted(self)
        return self.scaling_.pull_back(self.solution_.kernel)

    def _left_out_rows(self) -> LeftOut:
        """For every row that was passed with a weight > 0 the value by functions that have not seen it."""
        if not self._is_least_squares:
            why = "only least squares leave rows out in closed form; see predict_proba or predict_interval"
        elif self._merged_rows is None:
            why = "the rows that were learned from are not here"
        else:
            try:
                found = self._left_out(whole=True).at(*self._merged_rows)
            except MemoryLimitError as error:
                raise MissingAttributeError(f"{type(self).__name__} has no loo_predictions_: {error}") from error
            if found is not None and np.isfinite(found.F).all():
                return found
            why = "functions have seen a part of the rows only, or the arithmetic broke down"
        raise MissingAttributeError(f"{type(self).__name__} has no loo_predictions_: {why}.")

    @property
    def loo_predictions_(self) -> NDArray[Any]:
        """For every row of positive weight the prediction by a function that was trained without it."""
        found = self._derived("left out", self._left_out_rows)
        return self.targets_.decoded(found.F.T)

    @property
    def loo_score_(self) -> float:
        """Accuracy or R^2 of `loo_predictions_`, rows counting by their weights."""
        predicted, found = self.loo_predictions_, self._derived("left out", self._left_out_rows)
        truth = self.targets_.decoded(found.Y.T)
        metric: Callable[..., float] = accuracy_score if is_classifier(self) else r2_score
        return float(metric(truth, predicted, sample_weight=found.weights))

    @property
    def feature_relevance_(self) -> Array:
        """How much the learned functions change with each feature, shares of shape (n_encoded_features,)."""

        def compute() -> Array:
            found, columns = np.zeros(len(self.scaling_.scale)), self.scaling_.columns
            found[columns] = relevance(self._evaluate, self._training_points())
            return found

        return np.array(self._derived("relevance", compute))

    @property
    def effective_rank_(self) -> float:
        """``trace(K)^2 / |K|_F^2`` of the learned kernel on training rows: how many dimensions it has."""

        def compute() -> float:
            points = self._training_points()
            return effective_rank(self.solution_.kernel(points[spread_rows(len(points), RANK_ROWS)]))

        return float(self._derived("rank", compute))
