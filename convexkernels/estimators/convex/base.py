"""What the estimators of convex kernel learning share: a family, a loss, and a certified optimum."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.estimators.base import KernelEstimator
from convexkernels.estimators.convex.fold import PATH_TOL
from convexkernels.estimators.convex.path import LossAt, PathSelection, soft
from convexkernels.estimators.convex.selection import beside, choose, is_clearly_better
from convexkernels.estimators.learned import Tube, in_units_of
from convexkernels.estimators.left_out import LeftOut, learned_gram, left_out_of_problem
from convexkernels.estimators.table import TrainingTable, check_unit
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import ConvexKernelsWarning, InvalidInputError, UnsuitedFamilyWarning, tell
from convexkernels.factored import FactoredGram
from convexkernels.families.base import Family
from convexkernels.losses.base import LARGEST_PARAMETER, SMALLEST_PARAMETER, Loss
from convexkernels.losses.epsilon_insensitive import SUITED_EPSILON, EpsilonInsensitive
from convexkernels.losses.hinge import Hinge
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.solution import Solution, Status
from convexkernels.validation import check_number, check_whole_number

# Values of C to choose from, the most regular first, for kernels of unit scale, targets of unit spread and rows of unit
# weight.
COSTS = np.geomspace(0.01, 1e6, 17)
# The part of the time limit that choosing may take.
SHARE = 0.5
# By how much the R^2 of another family has to be better on rows left out to be mentioned: that of labels, of which .1
# are about .04 of accuracy and .07 are .01 (training rows of our tables), and of numbers.
NOTABLE = (0.1, 0.03)
# Rows up to which "auto" learns with matrices, as exact as they are; beyond, with features.
MATRIX_ROWS = 10_000


@dataclass(eq=False, repr=False, kw_only=True)
class ConvexEstimator(KernelEstimator):
    """Estimators that name a convex family of kernels and a loss, and solve to a duality gap."""

    intercept: bool = True
    tol: float = 1e-4
    solver: Any = "auto"
    memory_limit: float | None = None

    # The name of the regularization parameter.
    _regularization: ClassVar[str] = "C"
    # Seconds that matrices may take after the choice.
    _reserved = 0.0

    @abstractmethod
    def _families(self, X: Array, clock: Clock) -> dict[str, Family]:
        """The families to choose from by name, for the scaled rows of a table and for the time, the roughest first.

        They are on a scale on which C = 1 is a soft margin.
        """

    @abstractmethod
    def _loss(self, value: float, deviation: float) -> Loss:
        """The loss at a regularization parameter and a deviation of errors to be expected."""

    def _losses(self, n_outputs: int) -> dict[str, LossAt]:
        """The losses to choose from by name, for so many outputs, in the order in which they are tried."""
        return {"": self._loss}

    def _path_values(self, weight: float) -> Array:
        """Values to choose from for targets of unit spread and rows of this mean weight, the most regular first."""
        return np.asarray(COSTS / weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tol", self.tol, low=0.0, open_low=True)
        if self.memory_limit is not None:
            check_number("memory_limit", self.memory_limit, low=0.0, remedy="None means the free memory.")
        given = getattr(self, self._regularization)
        self._loss(1.0 if given is None else given, 1.0)

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> KernelLearning:
        check_unit(table.weights)
        # With weights all alike, the problem is the plain one, and says so.
        weights = None if (table.weights == 1.0).all() else table.weights
        y, loss = targets.expanded(table.y), self._loss(1.0, 1.0)
        options: dict[str, Any] = {"sample_weight": weights, "memory_limit": self.memory_limit}
        # Stated with the smoothest family, of few members: matrices of the largest one on all rows are formed after the
        # choice, for which time is left.
        self._compared = self._families(table.X, clock)
        return KernelLearning(list(self._compared.values())[-1], loss, table.X, y, **options)

    def _search(self) -> dict[str, Any]:
        return {"solver": self.solver, "tol": self._finer(self.tol)}

    def _solve(self, problem: KernelLearning, clock: Clock) -> Solution:
        problem, interrupted = self._chosen(problem, clock.sparing(self._reserved).part(SHARE))
        search = self._search() | {"initial": None if self.selection_ is None else self.selection_.theta}
        if not interrupted:
            return problem.solve(max_time=clock.left, progress=clock.show, checkpoint=clock.checkpoint, **search)
        tell("interrupted while parameters were chosen.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvexKernelsWarning)
            return replace(problem.solve(max_time=1e-3, **search), status=Status.INTERRUPTED)

    def _chosen(self, problem: KernelLearning, clock: Clock) -> tuple[KernelLearning, bool]:
        """The problem with all its parameters, and whether the user interrupted the choice; sets what was chosen."""
        name = self._regularization
        given = getattr(self, name)
        values = np.array([given], dtype=np.float64)
        if given is None:
            values = self._path_values(float(problem.weights.mean()))
        families, losses = self._compared, self._losses(len(problem.Y))
        self._compared = {}
        (self._called, *_), (loss, *_), found = reversed(families), losses, None
        if (self._has_choice or len(families) > 1) and np.ptp(problem.Y, axis=1).any():
            tol = self._finer(PATH_TOL)
            problem, self._called, loss, found = choose(problem, families, name, losses, values, clock, tol)
            if found is not None and not found.interrupted:
                found = self._beside_reference(problem, found, values, clock)
        value = soft(values) if found is None else found.value
        self.selection_: PathSelection | None = found
        setattr(self, f"{name}_", value)
        interrupted, deviation = (False, 1.0) if found is None else (found.interrupted, found.deviation)
        return problem.with_loss(losses[loss](value, deviation)), interrupted

    def _references(self, X: Array) -> list[Family]:
        """What the family is to be compared with, so that the estimator notices where it does not suit a table."""
        return []

    @property
    def _compared_with(self) -> tuple[str, str, str]:
        """What these are called, what the kernels of the family are, and what to do where these are better."""
        return "Gaussian kernels", "the kernels of this estimator", "try MultipleKernel... or HierarchicalGaussian..."

    def _beside_reference(
        self, problem: KernelLearning, found: PathSelection, values: Array, clock: Clock
    ) -> PathSelection:
        """What was chosen, with the score of the reference by squares; tells where that is clearly better."""
        references, own = self._references(problem.X), found.errors_by_squares
        if not references or clock.is_over:
            return found
        notable = NOTABLE[problem.loss.is_of_differences]
        apart = Clock(clock.left, clock.show, clock.checkpoint)  # it only says whether there is something to be told
        try:
            other = beside(problem, references, found.name, values, notable, apart)
            if own is None:
                own = beside(problem, [problem.family], found.name, values, notable, apart)
        except KeyboardInterrupt:
            return replace(found, interrupted=True)
        if other is None or own is None:
            return found
        score = 1.0 - float(other.sum())
        if is_clearly_better(other, own, notable):
            others, own_ones, remedy = self._compared_with
            tell(
                f"{others} predict rows that were left out better (R^2 {score:.3f}) than {own_ones} "
                f"({1.0 - own.sum():.3f}). Where predictions count, {remedy}; where all parameters are given, "
                "nothing is compared.",
                UnsuitedFamilyWarning,
            )
        return replace(found, reference=score)

    @property
    def _has_choice(self) -> bool:
        """Whether a parameter of the loss is to be chosen."""
        return getattr(self, self._regularization) is None

    def _left_out(self, whole: bool = False) -> LeftOut:
        return left_out_of_problem(self.solution_.problem, self.solution_.theta, self._gram, whole)

    def _gram(self, rows: Index) -> Array | FactoredGram:
        """The learned kernel matrix of some training points, up to constants where there is an intercept."""
        problem = self.solution_.problem
        try:
            return learned_gram(problem, self.solution_.theta, rows)
        finally:
            problem.gram_set.release()

    def _coefficients(self, m: int) -> Array:
        # Functions of features or landmarks have coefficients of these; those of rows are the ones that were certified.
        support, W = self.solution_.function.support, np.zeros(self.solution_.problem.Y.shape)
        found = self.solution_.problem.measured(self.solution_.theta, self.solution_.alpha)
        W[:, support] = (found.multiples[:, None] * found.W)[:, support]
        return W

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self.support_vectors_ = rows.points_of(self.support_)
        self.solution_.problem.gram_set.release()  # a fitted estimator lives longer than its m x m matrices should


def number_of_features(name: str, value: Any, n_rows: int, otherwise: int) -> int | None:
    """What a parameter that replaces matrices by features stands for: a number, or None for matrices."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return otherwise if value is not None and n_rows > MATRIX_ROWS else None
    return check_whole_number(name, value, low=1, remedy="None means matrices, 'auto' a choice by the number of rows.")


@dataclass(eq=False, repr=False, kw_only=True)
class CostEstimator(ConvexEstimator):
    """With the loss of a support vector machine, or perhaps the squared one, weighed by C."""

    C: float | None = field(default=None, kw_only=False)
    loss: str

    # The loss of support vectors.
    _of_vectors: ClassVar[str]

    def _check_parameters(self) -> None:
        if not isinstance(self.loss, str) or self.loss not in ("auto", self._of_vectors, "least_squares"):
            raise InvalidInputError(f"loss must be 'auto', {self._of_vectors!r} or 'least_squares', got {self.loss!r}.")
        if self.loss == "least_squares" and self.C is not None:
            highest = 0.5 * LARGEST_PARAMETER
            check_number("C", self.C, low=SMALLEST_PARAMETER, high=highest, remedy="Squares are weighed by 1 / (2 C).")
        super()._check_parameters()

    def _least_squares(self, value: float, deviation: float) -> LeastSquares:
        return LeastSquares(0.5 / value, self.intercept)

    def _compares(self, n_outputs: int) -> bool:
        """Whether there is a choice of both losses."""
        return self.loss == "auto" and self.C is None

    def _losses(self, n_outputs: int) -> dict[str, LossAt]:
        squares: dict[str, LossAt] = {"least_squares": self._least_squares}
        if self.loss == "least_squares":
            return squares
        return {self._of_vectors: self._loss} | (squares if self._compares(n_outputs) else {})

    @property
    def loss_(self) -> str:
        """The loss of the learned functions."""
        check_is_fitted(self)
        return "least_squares" if self._is_least_squares else self._of_vectors


@dataclass(eq=False, repr=False, kw_only=True)
class HingeEstimator(CostEstimator):
    """With the hinge loss, or for more than two classes perhaps with the squared one."""

    loss: str = "hinge"

    _of_vectors: ClassVar[str] = "hinge"

    def _loss(self, value: float, deviation: float) -> Hinge:
        # Labels are stated for it, and scored by how many are right, whatever is learned with.
        return Hinge(value, self.intercept)

    def _compares(self, n_outputs: int) -> bool:
        return n_outputs > 1 and super()._compares(n_outputs)


@dataclass(eq=False, repr=False, kw_only=True)
class EpsilonEstimator(Tube, CostEstimator):
    """With the epsilon-insensitive loss, or where its functions are not the mean perhaps with the squared one."""

    epsilon: float | None = None
    loss: str = "auto"

    _of_vectors: ClassVar[str] = "epsilon_insensitive"
    # What is given, in units of the encoded targets.
    _epsilon = 0.0

    def _check_parameters(self) -> None:
        if self.epsilon is not None:
            check_number("epsilon", self.epsilon, low=0.0)
            if self.loss == "least_squares":
                raise InvalidInputError(
                    f"epsilon is {self.epsilon!r}, but loss='least_squares' leaves no deviation alone; "
                    "leave epsilon out, or pass loss='epsilon_insensitive'."
                )
        super()._check_parameters()

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> KernelLearning:
        if self.epsilon is not None:
            self._epsilon = in_units_of(targets, self.epsilon)
        return super()._problem(table, targets, clock)

    def _loss(self, value: float, deviation: float) -> Loss:
        if self.loss == "least_squares":
            return self._least_squares(value, deviation)
        epsilon = SUITED_EPSILON * deviation if self.epsilon is None else self._epsilon
        return EpsilonInsensitive(value, epsilon, self.intercept)

    def _compares(self, n_outputs: int) -> bool:
        return self.epsilon is None and super()._compares(n_outputs)

    @property
    def _level(self) -> float | None:
        return None if self.loss == "least_squares" else super()._level

    @property
    def _has_choice(self) -> bool:
        return self.C is None or (self.epsilon is None and self.loss != "least_squares")


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeEstimator(ConvexEstimator):
    """With the squared loss."""

    lam: float | None = field(default=None, kw_only=False)

    _regularization: ClassVar[str] = "lam"

    def _loss(self, value: float, deviation: float) -> LeastSquares:
        return LeastSquares(value, self.intercept)

    def _path_values(self, weight: float) -> Array:
        return np.asarray(0.5 * weight / COSTS)
