"""What concatenated estimators share: the family, the search, weights of norms, and functions of all rows."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from convexkernels.arrays import Array, Index
from convexkernels.clock import Clock
from convexkernels.criteria.folds import spread_sample
from convexkernels.criteria.training_value import TrainingValue
from convexkernels.estimators.base import KernelEstimator, seed_from
from convexkernels.estimators.concatenated.settings import candidates, learned_scale, with_weights
from convexkernels.estimators.in_time import solved_in_time
from convexkernels.estimators.left_out import LeftOut, left_out_of_kernel
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.scikit_learn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from convexkernels.estimators.table import TrainingTable, check_unit
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import kept_back, tell, tell_again
from convexkernels.families.curved.concatenations import Concatenations
from convexkernels.kernels.concatenated import Concatenated
from convexkernels.kernels.matern import Matern
from convexkernels.kernels.polynomial import Polynomial
from convexkernels.losses.base import Loss
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.outer_solver import Kept, OuterSolver
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Solution, Status
from convexkernels.solvers.nonconvex.paths import PATH_TOL, select_weights
from convexkernels.solvers.nonconvex.restarts import Restarts, extended, sampled_rows, seed_of
from convexkernels.validation import check_memory, check_whole_number

# Images have no more coordinates than this by default (of more columns so many principal components begin them): a
# matrix with a row for each of 784 columns left no time to choose its weights in.
MOST_IMAGES = 50
# Rows that starts and weights of norms are searched on.
SEARCH_SIZE = 400
# Starts of the cross-validated paths.
MOST_PATH_STARTS = 2
# Rows from which on weights of norms are chosen on folds.
LEAST_ROWS = 3
# Rows held out while weights were chosen from which on they say how far predictions are off.
ENOUGH_HELD_OUT = 20
# Share of the time limit that the choice of lam and mu may take.
SELECTION_SHARE = 0.5
# Rows that inner maps are learned on. Of 15,000 rows of cadata 2,000 give maps, in 24 s, with which functions of all
# rows have the R^2 .782 on others; 5,000 take 256 s, and have .781; functions of these rows alone .741 and .760.
MAP_ROWS = 2000
# Of a limit below so many seconds fewer rows, as this power of it: a search of 2,000 that ends at once takes a quarter.
# Of a loss that is solved by steps as if each output had so much less of it: on 2,000 noisy rows of 60 columns one
# inner problem takes seconds (hinge loss, five classes, limit of 20 s: 86 s by 2,000 rows).
MAP_SECONDS, MAP_POWER, FEWEST_MAP_ROWS, BY_STEPS = 6.0, 0.57, 200, 8
# Seconds for a pair of rows that are left for functions of all rows (15,000 rows: 4 to 7), their relative duality gap,
# and losses that have some.
PAIR_SECONDS, ALL_ROWS_TOL = 1e-7, 1e-3
ON_ALL_ROWS = LeastSquares | SupportVectorLoss
# Rows whose images are found at once.
BLOCK = 5000
# Matrices of all pairs of rows that a layer takes.
MATRICES = 3


@dataclass(eq=False, repr=False, kw_only=True)
class ConcatenatedEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """What all of them share: the family, the search, and the inner images."""

    layers: Any = field(default=None, kw_only=False)
    mu: Any = None
    n_restarts: Any = 4
    tol: float = 1e-4
    random_state: Any = None
    n_jobs: int | None = None

    def _chosen_loss(self) -> Loss:
        """The loss, with any lam."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._chosen_loss()
        self._family()
        if not isinstance(self.n_restarts, Restarts):
            check_whole_number("n_restarts", self.n_restarts, low=1)

    def _family(self, n_features: int = 1) -> Concatenations:
        if isinstance(self.layers, Concatenations):
            return self.layers
        if self.layers is None:
            return Concatenations([Matern(order=2), Polynomial(degree=1)], min(n_features, MOST_IMAGES))
        return Concatenations(self.layers)

    def _scaling_of(self, X: Array) -> Scaling:
        if self.layers is not None:
            return Scaling.none(X)
        return Scaling.without_outliers(X, partial(Scaling.standard, categories=self._encoded_categories()))

    def _solver(self, seed: Any) -> Restarts:
        chosen = self.n_restarts
        solver = copy(chosen) if isinstance(chosen, Restarts) else Restarts(chosen, SEARCH_SIZE)
        solver.random_state, solver.n_jobs = seed, self.n_jobs
        return solver

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> OuterLearning:
        check_unit(table.weights)
        X, y, state = table.X, targets.expanded(table.y), self.random_state
        self._seed = self._kept_seed(seed_of(seed_from(state) if isinstance(state, np.random.RandomState) else state))
        family, loss, self._learned_factors = self._family(X.shape[1]), self._chosen_loss(), None
        needed = MATRICES * len(family.layers) * 8.0 * len(X) ** 2
        check_memory(needed, None, what=f"learning inner maps on {len(X)} rows", remedy="Pass fewer rows.")
        if self.layers is None:
            # First of all: to state the problem on other points takes as long as several steps of its search.
            Y = loss.targets(y, len(X))
            rows = self._usual_rows(X, Y, table.weights)
            part = (X, Y, table.weights) if rows is None else (X[rows], Y[:, rows], table.weights[rows])
            self._learned_factors = learned_scale(family.layers[0], *part, clock, self._seed, self._tied)
            X = X * self._learned_factors
        return OuterLearning(family, loss, TrainingValue(), X, y, sample_weight=table.weights)

    def _usual_rows(self, X: Array, Y: Array, weights: Array) -> Index | None:
        """The rows that squares may learn from where the loss hardly feels outliers; None for all of them."""
        return None

    def _weighed(self, problem: OuterLearning, solver: Restarts, clock: Clock) -> tuple[OuterLearning, OuterSolver]:
        """The problem with its weights of norms, and how it is searched."""
        family: Any = problem.family
        return problem.with_loss(problem.loss, family.with_mu(1.0 if self.mu is None else self.mu)), solver

    def _solve(self, problem: OuterLearning, clock: Clock) -> Solution:
        problem, solver = self._weighed(problem, self._solver(self.__dict__.pop("_seed")), clock)
        options: dict[str, Any] = {"progress": clock.show, "checkpoint": clock.checkpoint}
        return problem.solve(solver, tol=self._finer(self.tol), max_time=clock.left, **options)

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self.scaling_ = replace(self.scaling_, factors=self.__dict__.pop("_learned_factors"))

    @property
    def _n_features_out(self) -> int:
        return int(self.solution_.problem.gram_set.stack.widths[0])

    def transform(self, X: Any) -> Array:
        """Inner images g(x) = f_2 o ... o f_L (x), on which the outermost functions act.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, width of f_2)
        """
        check_is_fitted(self)
        images: Array = self.solution_.kernel.images(self._points(X))
        return images


@dataclass(eq=False, repr=False, kw_only=True)
class RegularizedConcatenation(ConcatenatedEstimator):
    """With lam and mu, which can be cross-validated, and outermost functions of more rows than inner maps have seen."""

    lam: Any = None
    cv: int = 3
    tol: float = 1e-3

    def _problem(self, table: TrainingTable, targets: Targets, clock: Clock) -> OuterLearning:
        whole, m, loss, y = None, len(table.X), self._chosen_loss(), targets.expanded(table.y)
        Y = loss.targets(y, m)
        if isinstance(loss, LeastSquares):
            limit = np.inf if self.max_time == "auto" else clock.max_time
        else:
            limit = clock.max_time / (BY_STEPS * len(Y))
        fewest = max(FEWEST_MAP_ROWS, 4 * len(Y))  # a row of each class is among them
        most = max(fewest, int(MAP_ROWS * min(1.0, limit / MAP_SECONDS) ** MAP_POWER))
        if m > most and isinstance(loss, ON_ALL_ROWS):
            rows = spread_sample(Y, most, np.random.default_rng(0))
            whole = table, y, rows
            table = replace(table, X=table.X[rows], y=table.y[rows], weights=table.weights[rows])
        problem = super()._problem(table, targets, clock)
        self._whole = whole
        return problem

    def _solve(self, problem: OuterLearning, clock: Clock) -> Solution:
        whole, seed = self.__dict__.pop("_whole"), self._seed
        if whole is None:
            self._of_all: tuple[Solution | None, Index | None] = None, None
            return super()._solve(problem, clock)
        table, y, rows = whole
        with kept_back() as said:
            found, of_all = super()._solve(problem, clock.sparing(PAIR_SECONDS * len(table.X) ** 2)), None
        if not (found.status is Status.INTERRUPTED or clock.is_over):
            try:
                of_all = self._learned_from_all(found, table, y, clock, seed)
            except KeyboardInterrupt:
                clock.interrupt()
        self._of_all = of_all, rows
        if of_all is not None:
            if not of_all.status.is_success:  # which has been told
                return replace(found, status=of_all.status)
            tell_again(said)
            return found
        status = Status.INTERRUPTED if found.status is Status.INTERRUPTED or clock.interrupted else Status.TIME_LIMIT
        tell(f"{status.name}: the functions are trained on {problem.m} of {len(table.X)} rows.")
        return replace(found, status=status)

    def _learned_from_all(
        self, found: Solution, table: TrainingTable, y: Array, clock: Clock, seed: int
    ) -> Solution | None:
        """The convex problem of the outermost functions on images of all rows; None where time has left zeros."""
        factors, kernel, stated = self._learned_factors, found.kernel, found.problem.stated_at(found.theta)
        images = _images(kernel, table.X if factors is None else table.X * factors)
        problem = FixedKernel(kernel.outer, X=images, y=y, sample_weight=table.weights, **stated)
        # Of least squares, lam is chosen here: from what was given, else around that of the inner maps.
        is_given = self.lam is not None and isinstance(problem.loss, LeastSquares)
        lams = np.ravel(self.lam).tolist() if is_given else None
        solution = solved_in_time(problem, clock, tol=self._finer(ALL_ROWS_TOL), lams=lams, random_state=seed)
        if solution is not None:
            self.lam_ = float(solution.problem.loss.lam)
        return solution

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        super()._finish(rows, table)
        self.all_rows_, self._map_rows = self.__dict__.pop("_of_all")

    # -- with functions of all rows ----------------------------------------------------------------

    def _evaluate(self, points: Array) -> Array:
        if self.all_rows_ is None:
            return super()._evaluate(points)
        return np.asarray(self.all_rows_.decision_function(_images(self.solution_.kernel, points)))

    def _with_changes(self) -> Any:
        return super()._with_changes() if self.all_rows_ is None else None

    def _coefficients(self, m: int) -> Array:
        if self.all_rows_ is not None:
            return np.asarray(self.all_rows_.function.coefficients(m))
        if self._map_rows is None:
            return super()._coefficients(m)
        W = np.zeros((len(self.solution_.problem.Y), m))
        W[:, self._map_rows] = super()._coefficients(len(self._map_rows))
        return W

    def _certificates(self) -> str:
        of_all = "" if self.all_rows_ is None else f"; of the outermost functions {self.all_rows_.certificate}"
        return f"{super()._certificates()}{of_all}"

    def _weighed(self, problem: OuterLearning, solver: Restarts, clock: Clock) -> tuple[OuterLearning, OuterSolver]:
        rows = sampled_rows(problem, solver.search_size, solver.random_state)
        small = problem if rows is None else problem.on_rows(rows)
        usual = self._usual_rows(small.X, small.Y, small.weights)
        plain = small if usual is None else small.on_rows(usual)  # for what squares say
        loss = self._suited_loss(plain, clock)
        problem, small, plain = (one.with_loss(loss) for one in (problem, small, plain))
        lams, mus = candidates(plain, self.lam, self.mu, clock)
        self.selection_, chosen, self._held_out = None, None, None
        if len(lams) * len(mus) > 1 and small.m < min(self.cv, LEAST_ROWS):  # no rows to hold out
            lams, mus = ([values[len(values) // 2]] for values in (lams, mus))
        if len(lams) * len(mus) > 1:
            self.selection_ = select_weights(
                small,
                with_weights,
                lams,
                mus,
                n_splits=self.cv,
                n_restarts=min(solver.n_restarts, MOST_PATH_STARTS),
                seed=int(solver.random_state),
                n_jobs=self.n_jobs,
                clock=clock.part(SELECTION_SHARE),
                tol=self._finer(PATH_TOL),
            )
            lams, mus, chosen = [self.selection_.lam], [self.selection_.mu], self.selection_.theta
            if self.selection_.held_out is not None:
                held, values = self.selection_.held_out
                self._held_out = (held if rows is None else rows[held]), values
        problem = with_weights(problem, lams[0], mus[0])
        self.lam_, self.mu_ = float(lams[0]), float(mus[0])
        if chosen is None:
            return problem, solver
        return problem, Kept(chosen if rows is None else extended(problem, chosen, rows))

    def _suited_loss(self, problem: OuterLearning, clock: Clock) -> Loss:
        """The loss with all parameters but its regularization, for the rows that weights of norms are chosen on."""
        return problem.loss

    def _left_out(self, whole: bool = False) -> LeftOut:
        """At rows held out while weights were chosen, whose inner maps have not seen them, where there are enough."""
        if self.all_rows_ is not None:
            return left_out_of_kernel(self.all_rows_, whole)
        if whole or self._held_out is None or len(self._held_out[0]) < ENOUGH_HELD_OUT:
            left = super()._left_out(whole)
        else:
            (rows, F), problem = self._held_out, self.solution_.problem
            left = LeftOut(F, problem.Y[:, rows], problem.weights[rows], rows)
        return left if self._map_rows is None else replace(left, rows=self._map_rows[left.get("rows")])


def _images(kernel: Concatenated, X: Array) -> Array:
    """Inner images of many rows, a block of them at a time: each is compared with all rows that taught the maps."""
    return np.concatenate([kernel.images(part) for part in np.array_split(X, -(-len(X) // BLOCK))])
