"""What can be read from a fitted estimator: its kernel, what its functions answer to, values at rows left out."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.backend import to_numpy
from convexkernels.estimators.columns import Columns
from convexkernels.estimators.left_out import LeftOut, left_out_of_kernel
from convexkernels.estimators.of_tables import of_tables
from convexkernels.estimators.outliers import usual_range, usual_share
from convexkernels.estimators.relevance import effective_rank, relevance, spread_rows
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import MemoryLimitError, MissingAttributeError
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss
from convexkernels.losses.epsilon_insensitive import EpsilonInsensitive
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.pinball import Pinball
from convexkernels.problems.decision_function import differences
from convexkernels.validation import LARGEST_TARGET

# Rows that the effective rank of a kernel is measured on.
RANK_ROWS = 1000
# The least relative gap that is asked for because of outliers.
FINEST = 1e-7
# Parameters that are chosen where they are not given, and how many kernels and features are described.
CHOSEN, SHOWN = ("C_", "loss_", "lam_", "mu_", "epsilon_", "sigma_", "lam1_", "degree_"), 5


class Robust:
    """A loss that hardly feels outliers: the unit of targets is that of the others, and so is what a gap means."""

    @property
    def _level(self) -> float | None:
        """The quantile of targets that functions are, None where the loss feels all of them."""
        return 0.5

    def _usual(self, table: TrainingTable) -> tuple[Array, Array] | None:
        if self._level is None:
            return None
        Y = table.y.reshape(len(table.y), -1).T
        low, high = usual_range(table.X, Y, table.weights)
        # Where outliers are so many that the quantile may be among them, it is not for the others.
        below, above = (beyond @ table.weights / table.weights.sum() for beyond in (low > Y, high < Y))
        few = ((below < 0.5 * self._level) & (above < 0.5 * (1.0 - self._level)))[:, None]
        ends = (np.where(few, end, bound) for end, bound in ((low, -np.inf), (high, np.inf)))
        low, high = (end.reshape(table.y.shape[1:]) for end in ends)
        self._usual_share = usual_share(table.y, (low, high), table.weights)
        return low, high

    def _finer(self, tol: float) -> float:
        return max(tol * self._usual_share, min(tol, FINEST))


def level_of(loss: Loss) -> float | None:
    """The quantile of targets that functions of a loss are, None where it feels outliers."""
    return loss.quantile if isinstance(loss, Pinball) else 0.5 if isinstance(loss, EpsilonInsensitive) else None


class Tube(Robust):
    """The deviation that the epsilon-insensitive loss of a fitted estimator leaves alone."""

    solution_: Any
    targets_: Any

    @property
    def epsilon_(self) -> float | Array:
        """Deviation that cost nothing, in units of y, of several outputs for each; refused for other losses."""
        check_is_fitted(self)
        found: float | Array = self._tube() * self.targets_.spread
        return found

    def _tube(self) -> float:
        """The same in units of the encoded targets."""
        loss = self.solution_.problem.loss
        if not isinstance(loss, EpsilonInsensitive):
            raise MissingAttributeError(f"{type(self).__name__} has no epsilon_: its loss is {loss!r}.")
        return loss.epsilon


def in_units_of(targets: Any, epsilon: float) -> float:
    """A given epsilon as one of the encoded targets: that of one output is in units of y."""
    # Beyond the range of floats it is as good as the largest one: nothing costs anything.
    unit = targets.spread.item() if targets.spread.size == 1 else 1.0
    return min(epsilon / unit, LARGEST_TARGET)


class Learned:
    """Attributes that are computed from the solution when they are first asked for, and kept with it."""

    solution_: Any
    scaling_: Scaling
    targets_: Targets
    columns_: Columns | None = None
    # Features that are one column of categories, while that is learned from.
    _tied: Sequence[Index] = ()
    feature_labels_: list[str]
    # Of the rows that were passed with a weight > 0: the row of the problem that each became, and the weights; and for
    # every row of the problem the first that became it. None where they are not here.
    _merged_rows: tuple[Index, Array, Index] | None

    # -- hooks -------------------------------------------------------------------------------------

    @abstractmethod
    def _evaluate(self, points: Array) -> Array:
        """Values of the learned functions at scaled points."""

    def _changes(self, points: Array, steps: Array) -> Array:
        """How values change when a feature moves, as `DecisionFunction.changes`."""
        if (function := self._with_changes()) is not None:
            return np.asarray(function.changes(points, steps))
        return differences(self._evaluate, points, steps)

    def _outputs(self, points: Array) -> Array:
        """The values whose changes these are."""
        function = self._with_changes()
        return np.asarray(self._evaluate(points) if function is None else function.values(points))

    def _with_changes(self) -> Any:
        function: Any = getattr(self, "function_", None) or getattr(self.solution_, "function", None)
        return function if hasattr(function, "changes") else None

    def _categories(self, scaling: Scaling) -> list[Index]:
        """Columns of the scaled table that each column of categories became."""
        used = scaling.columns.tolist()
        found = [[used.index(j) for j in there if j in used] for there in self._encoded_categories()]
        return [np.array(there, dtype=np.intp) for there in found]

    def _encoded_categories(self) -> list[list[int]]:
        """The same of the table as numbers."""
        if self.columns_ is None:
            return []
        places = zip(self.columns_.places.values(), self.columns_.categories, strict=True)
        return [there for there, kind in places if kind is not None]

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

    def _coefficients(self, m: int) -> Array:
        """Coefficients of the m rows of the problem in the learned functions, shape (n_outputs, m)."""
        function = self.solution_.function
        if not hasattr(function, "coefficients"):
            raise MissingAttributeError("its functions are sums of weighted features, not of kernels at rows")
        return np.asarray(function.coefficients(m))

    def _kernel(self) -> Kernel:
        """The kernel of the learned functions, on scaled points."""
        kernel: Kernel = self.solution_.kernel
        return kernel

    def _kernel_weights(self) -> dict[str, float]:
        """Weights of candidates by name, the largest first; empty where there are no candidates."""
        return {}

    def _certificates(self) -> str:
        """What is known of the answer."""
        return str(self.solution_.certificate)

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
        return of_tables(self.scaling_.pull_back(self._kernel()), self.columns_)

    def _left_out_rows(self) -> LeftOut:
        """For every row that was passed with a weight > 0 the value by functions that have not seen it."""
        if not self._is_least_squares:
            why = "only least squares leave rows out in closed form; see predict_proba or predict_interval"
        elif self._merged_rows is None:
            why = "the rows that were learned from are not here"
        else:
            try:
                found = self._left_out(whole=True).at(*self._merged_rows[:2])
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
        truth = self.targets_.truth(found.Y.T)
        metric: Callable[..., float] = accuracy_score if is_classifier(self) else r2_score
        return float(metric(truth, predicted, sample_weight=found.weights))

    @property
    def feature_relevance_(self) -> Array:
        """How much the learned functions change with each feature, shares of shape (n_encoded_features,)."""

        def compute() -> Array:
            found, columns = np.zeros(len(self.scaling_.scale)), self.scaling_.columns
            points = self._training_points()
            found[columns] = relevance(self._changes, self._outputs, points, self._categories(self.scaling_))
            return found

        return np.array(self._derived("relevance", compute))

    @property
    def effective_rank_(self) -> float:
        """``trace(K)^2 / |K|_F^2`` of the learned kernel on training rows: how many dimensions it has."""
        return float(self._derived("rank", self._effective_rank))

    def _effective_rank(self) -> float:
        points = self._training_points()
        return effective_rank(self._kernel()(points[spread_rows(len(points), RANK_ROWS)]))

    def _support(self) -> tuple[Index, Array]:
        """Rows with a coefficient in the order of the table, and the coefficients in units of the targets."""
        try:
            if self._merged_rows is None:
                raise MissingAttributeError("the rows that were learned from are not here")
            first = self._merged_rows[2]
            W = self._coefficients(len(first))
        except MissingAttributeError as error:
            raise MissingAttributeError(f"{type(self).__name__} has no support_: {error}.") from error
        rows = np.flatnonzero(W.any(axis=0))
        rows = rows[np.argsort(first[rows])]
        return first[rows], self.targets_.shaped(W[:, rows].T) * getattr(self.targets_, "spread", 1.0)

    @property
    def support_(self) -> Index:
        """Rows of the training table that prediction uses, ascending."""
        return np.array(self._derived("support", self._support)[0])

    @property
    def support_coefficients_(self) -> Array:
        """How much each of these rows counts, shape (n_support,) or (n_support, n_outputs)."""
        return np.array(self._derived("support", self._support)[1])

    def describe(self) -> str:
        """What was learned and what is known about it, line by line."""
        check_is_fitted(self)
        chosen = {name[:-1]: getattr(self, name) for name in CHOSEN if hasattr(self, name)}
        chosen = getattr(getattr(self, "selection_", None), "chosen", {}) | chosen
        weights = list(self._kernel_weights().items())[:SHOWN]
        lines = {
            "certificate": self._certificates(),
            "status": self.solution_.status.value,
            "chosen": ", ".join(
                f"{name}=" + (value if isinstance(value, str) else ", ".join(f"{one:.3g}" for one in np.ravel(value)))
                for name, value in chosen.items()
                if isinstance(value, str | float | int | np.ndarray)
            ),
            "kernels": ", ".join(f"{name} {100.0 * weight:.0f} %" for name, weight in weights),
        }
        if hasattr(self, "effective_rank_"):
            lines["rank"] = f"the learned kernel uses {self.effective_rank_:.1f} dimensions"
        if hasattr(self, "support_") and self.support_.size:
            sizes = np.abs(self.support_coefficients_.reshape(len(self.support_), -1)).sum(axis=1)
            most = self.support_[np.argsort(-sizes, kind="stable")[:SHOWN]]
            lines["rows"] = f"{len(sizes)} count in the functions, most of all {', '.join(map(str, most))}"
        if hasattr(self, "feature_relevance_"):
            relevance, labels = self.feature_relevance_, self.feature_labels_
            order = np.argsort(-relevance, kind="stable")[:SHOWN]
            lines["relevance"] = ", ".join(f"{labels[j]} {100.0 * relevance[j]:.0f} %" for j in order)
        return "\n".join(f"{name:<12} {line}" for name, line in lines.items() if line)
