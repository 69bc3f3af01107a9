"""Estimators that learn the weights of candidate kernels."""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array
from convexkernels.clock import Clock
from convexkernels.estimators.convex.base import (
    ConvexEstimator,
    EpsilonEstimator,
    HingeEstimator,
    RidgeEstimator,
    number_of_features,
)
from convexkernels.estimators.documentation import documented
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets
from convexkernels.estimators.tasks import KernelClassifier, KernelRegressor
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError, MissingAttributeError, tell
from convexkernels.families.base import Family
from convexkernels.families.candidate_list import check_matrices
from convexkernels.families.candidates import Candidates
from convexkernels.families.library import NARROWER, data_library
from convexkernels.families.precomputed import Precomputed, row_numbers
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.polynomial import Polynomial
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.solution import Solution

# Landmarks on tables that are too long for matrices.
LANDMARKS = 100
# Rows that the cost of the library's matrices is measured on, and the part of the time limit that they may take.
MEASURED_ROWS, MATRICES_SHARE = 250, 0.4
# Lists of candidates from the library, those that are compared and those that stay where the time is too short for
# all; of the last ones Gaussians of 0.4, 1.3 and 4 times the median distance.
COMPARED, SHORTER = ("rougher", "rough", "all", "smooth", "smoothest"), ("joint", "few")
FEW = slice(1, 6, 2)


@dataclass(eq=False, repr=False, kw_only=True)
class _CandidateEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ConvexEstimator):
    """Candidates from the parameter `kernels`, and the learned weights as fitted attributes."""

    kernels: Any = field(default=None, kw_only=False)
    normalize: str | None = None
    center: bool = False
    landmarks: int | str | None = "auto"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        number_of_features("landmarks", self.landmarks, 1, LANDMARKS)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TrainingTable:
        self._stack = None
        if isinstance(self.kernels, str) and self.kernels == "precomputed":
            self._stack = check_matrices(X)
            X = row_numbers(self._stack.shape[1])
        return super()._read(X, y, sample_weight)

    @property
    def _is_of_library(self) -> bool:
        """Whether candidates come from the table."""
        return self.kernels is None or (isinstance(self.kernels, str) and self.kernels in COMPARED + SHORTER)

    def _scaling_of(self, X: Array) -> Scaling:
        # The bandwidths of the library are meant for features of unit spread, its polynomials for the rows there are.
        if not self._is_of_library:
            return Scaling.none(X)
        return Scaling.standard(X, self._encoded_categories()).limited(X)

    def _families(self, X: Array, clock: Clock) -> dict[str, Family]:
        self._n_left_out = 0
        if not self._is_of_library:
            return {"": self._candidates(self._listed(), X)}
        # Of rows that are all alike no kernel says anything, which only kernels that were passed are refused for.
        of_name = {
            name: self._candidates(entries, X, allow_duplicates=True).of_part()
            for name, entries in self._lists(X).items()
        }
        if self.kernels is not None:
            return {"": of_name[self.kernels]}
        # A limit by default is generous: how busy a computer is must not decide what is learned.
        shorter = () if self.max_time == "auto" else SHORTER
        if not shorter or _in_time(of_name["all"], X, clock):
            return {name: of_name[name] for name in COMPARED}
        name = shorter[0] if _in_time(of_name[shorter[0]], X, clock) else shorter[1]
        self._n_left_out = len(of_name["all"].candidates) - len(of_name[name].candidates)
        return {name: of_name[name]}

    def _lists(self, X: Array) -> dict[str, list[Any]]:
        """Lists of candidates from the library by name."""
        with_narrower = data_library(X, groups=self._tied, narrower=NARROWER)
        library = with_narrower[len(NARROWER) :]
        rougher = [entry for entry in with_narrower if len(entry[2]) == X.shape[1]]
        on_all = rougher[len(NARROWER) :]
        # Where few rows tell little about single features, fewer and smoother candidates predict better. Of Gaussians
        # the narrowest fits the rows best and gets all weight, whatever is right for others: some are left out.
        smooth = [entry for entry in on_all if isinstance(entry[1], Gaussian | Polynomial)]
        compared = rougher, rougher[1:], library, smooth[1:], smooth[3:]
        return dict(zip(COMPARED + SHORTER, (*compared, on_all, on_all[FEW]), strict=True))

    def _references(self, X: Array) -> list[Family]:
        """Rough candidates by matrices, on a table on which landmarks cannot learn them."""
        if not self._is_of_library or number_of_features("landmarks", self.landmarks, len(X), LANDMARKS) is None:
            return []
        lists, normalize = self._lists(X), self._normalization
        rough = [lists[name] for name in COMPARED[1::-1]]
        return [Candidates(entries, normalize, self.center, allow_duplicates=True) for entries in rough]

    @property
    def _compared_with(self) -> tuple[str, str, str]:
        remedy = "pass more landmarks, or None where there is memory, or try HierarchicalGaussian..."
        return "Rough candidates with matrices", "candidates with landmarks", remedy

    @property
    def _normalization(self) -> str:
        return self.normalize or ("variance" if self.intercept else "mean")

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> KernelLearning:
        began = clock.seconds
        problem = super()._problem(table, targets, clock)
        compared: list[Any] = list(self._compared.values())
        here: Any = problem.family
        times = max(len(family.candidates) for family in compared) / len(here.candidates)
        self._reserved = times * (clock.seconds - began) if len(compared) > 1 else 0.0
        return problem

    def _solve(self, problem: KernelLearning, clock: Clock) -> Solution:
        if not self._n_left_out:
            return super()._solve(problem, clock)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvexKernelsWarning)
            solution = super()._solve(problem, clock)
        tell(
            f"max_time left no time to form the matrices of {self._n_left_out} of the candidates on {problem.m} rows, "
            f"and {len(solution.theta)} were weighed ({solution.status.value}); {solution.certificate}. Pass a longer "
            "max_time, or fewer rows."
        )
        clock.cuts.clear()  # this one warning says that time was short
        return solution

    def _candidates(self, kernels: list[Any], X: Array, **options: Any) -> Candidates:
        landmarks = number_of_features("landmarks", self.landmarks, len(X), LANDMARKS)
        if self.landmarks == "auto" and (self.center or any(isinstance(kernel, Precomputed) for kernel in kernels)):
            landmarks = None
        return Candidates(kernels, self._normalization, self.center, landmarks=landmarks, **options)

    def _listed(self) -> list[Any]:
        """The candidates that were passed."""
        if self._stack is not None:
            return [Precomputed(K) for K in self._stack]
        if isinstance(self.kernels, np.ndarray) and self.kernels.dtype != object:
            return [Precomputed(K) for K in check_matrices(self.kernels)]
        if not isinstance(self.kernels, Iterable) or isinstance(self.kernels, str):
            raise InvalidInputError(
                f"kernels must be None, one of {', '.join(map(repr, (*COMPARED, *SHORTER, 'precomputed')))}, a list of "
                f"kernels or an array of shape (l, N, N), got {self.kernels!r}."
            )
        return [self._with_indices(entry) for entry in self.kernels]

    def _with_indices(self, entry: Any) -> Any:
        """Replace column names by their places, when the table that is fitted has column names."""
        if not (isinstance(entry, tuple) and len(entry) == 3):
            return entry
        name, kernel, columns = entry
        wanted = [columns] if isinstance(columns, str) else columns
        if not isinstance(wanted, list | tuple | np.ndarray) or not any(isinstance(c, str) for c in wanted):
            return entry
        named = hasattr(self, "feature_names_in_")
        places = {name: [j] for j, name in enumerate(self.feature_names_in_)} if named else {}
        if self.columns_ is not None:
            places = self.columns_.places
        missing = [c for c in wanted if c not in places]
        if missing:
            raise InvalidInputError(
                f"kernel {name!r} asks for the column {missing[0]!r}, but the table has "
                + (f"the columns {list(places)}." if places else "no column names; pass a DataFrame, or use indices.")
            )
        return name, kernel, [j for c in wanted for j in places[c]]

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        super()._finish(rows, table)
        self.weights_ = self.solution_.theta.copy()
        self._learned_points = table.X
        self._fitted_kernels, self._fitted_of_library = self._called or self.kernels, self._is_of_library
        if self._stack is not None:
            self._stack = self._stack[:0]  # the solution holds what prediction needs

    @property
    def kernels_(self) -> Any:
        """The name of the list of candidates; what was passed, where that was no name."""
        check_is_fitted(self)
        return self._fitted_kernels

    @property
    def kernel_names_(self) -> list[str]:
        """Names of the candidates; those of the library say on which column they are."""
        check_is_fitted(self)
        names = list(self.solution_.problem.gram_set.names)
        if not self._fitted_of_library:
            return names
        return [re.sub(r"(?<= on )x(\d+)( to x\d+)?$", self._column_of, name) for name in names]

    def _column_of(self, found: re.Match[str]) -> str:
        """What the column of a candidate of the library is called; of categories the one that was passed."""
        j = int(self.scaling_.columns[int(found[1])])
        if found[2] is None or self.columns_ is None:
            return str(self.feature_labels_[j])
        return str(next(name for name, there in self.columns_.places.items() if j in there))

    def weights_by_name(self, smallest: float = 1e-6) -> dict[str, float]:
        """Weights above `smallest` under the names of their kernels, the largest first."""
        check_is_fitted(self)
        names, order = self.kernel_names_, np.argsort(-self.weights_, kind="stable").tolist()
        return {names[k]: float(self.weights_[k]) for k in order if self.weights_[k] > smallest}

    def _kernel_weights(self) -> dict[str, float]:
        return self.weights_by_name()

    def _values(self, X: Any) -> Array:
        if not (isinstance(X, np.ndarray) and X.ndim == 3):
            return super()._values(X)
        check_is_fitted(self)
        return self._evaluate(X)

    @property
    def feature_relevance_(self) -> Array:
        """As for every estimator; Gram matrices that were passed have no features."""
        if self._stack is not None or isinstance(self.kernels_, np.ndarray):
            raise MissingAttributeError(
                "Gram matrices have no features to be relevant; weights_by_name says which of them count."
            )
        return super().feature_relevance_

    def transform(self, X: Any) -> Array:
        """Learned kernel between rows of `X` and the distinct training rows in sorted order, shape (n_samples, n_rows).

        Features for any linear method. For a Gram matrix whose columns are in the order of a table, call the fitted
        estimator or its `kernel_` on that table.
        """
        return np.asarray(self.solution_.kernel(self._points(X), self._learned_points))

    @property
    def _n_features_out(self) -> int:
        return len(self._learned_points)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Evaluate the learned kernel: a fitted estimator is a valid ``kernel=`` of scikit-learn's SVC."""
        return self.kernel_(X, Y)


def _in_time(family: Candidates, X: Array, clock: Clock) -> bool:
    """Whether there is time to form the matrices of a family, by what some of their rows take."""
    limit = clock.left
    if limit is None or len(X) <= 2 * MEASURED_ROWS:
        return True
    if clock.is_over:
        return False
    measured, ratio = Clock(), len(X) / MEASURED_ROWS
    family.of_part().on(X[:MEASURED_ROWS])
    return measured.seconds * (ratio**2 if family.landmarks is None else ratio) <= MATRICES_SHARE * limit


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class MultipleKernelSVC(KernelClassifier, HingeEstimator, _CandidateEstimator):
    """Support vector classifier that learns a convex combination of candidate kernels, to a certified optimum.

    {Parameters: parameters}
    {Attributes: candidate_weights, classes, chosen_cost, learned}
    {Notes: candidates}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from convexkernels import Gaussian, MultipleKernelSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> kernels = [(name, Gaussian(1.0), [j]) for j, name in enumerate(load_iris().feature_names)]
    >>> model = MultipleKernelSVC(kernels, C=10.0).fit(X, y)
    >>> len(model.weights_), model.score(X, y) > 0.9
    (4, True)
    """


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class MultipleKernelSVR(KernelRegressor, EpsilonEstimator, _CandidateEstimator):
    """Support vector regression that learns a convex combination of candidate kernels, to a certified optimum.

    {Parameters: tube_loss, parameters}
    {Attributes: candidate_weights, chosen_tube, learned}
    {Notes: candidates}

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import MultipleKernelSVR
    >>> X, y = make_friedman1(100, random_state=0)
    >>> MultipleKernelSVR(C=10.0).fit(X, y).score(X, y) > 0.9
    True
    """


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class MultipleKernelRidge(KernelRegressor, RidgeEstimator, _CandidateEstimator):
    """Kernel ridge regression that learns a convex combination of candidate kernels, to a certified optimum.

    {Parameters: parameters}
    {Attributes: candidate_weights, chosen_lam, learned}
    {Notes: candidates}

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from convexkernels import MultipleKernelRidge
    >>> X, y = make_friedman1(100, random_state=0)
    >>> MultipleKernelRidge(lam=0.1).fit(X, y).score(X, y) > 0.9
    True
    """
