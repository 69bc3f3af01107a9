"""What the estimators with a hierarchical Gaussian kernel share: choice of the tree, searches, machines, relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.base import seed_from
from convexkernels.estimators.scaling import Scaling
from convexkernels.estimators.table import TrainingTable, read_points
from convexkernels.estimators.targets import Targets
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.hierarchical_gaussian import HierarchicalGaussian
from convexkernels.outer.hierarchical import HierarchicalLearning, HierarchicalSolution
from convexkernels.outer.hierarchical_architecture import as_candidates
from convexkernels.outer.hierarchical_machine import AveragedMachine
from convexkernels.outer.hierarchical_parts import split_rows
from convexkernels.outer.hierarchical_published import PAPER_SCHEDULE, Schedule
from convexkernels.validation import check_memory, check_number, check_whole_number

__all__ = ["ArchitectureChoice", "HierarchicalEstimator"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# Rows that the relevance of features is measured on.
RELEVANCE_ROWS = 1000
# Share of the time limit that the choice of the architecture may take.
CHOICE_SHARE = 0.5
# Square matrices of float64 that are alive while a machine is trained.
MATRICES = 3


@dataclass(frozen=True, eq=False)
class ArchitectureChoice:
    """How architectures compare.

    Attributes
    ----------
    candidates : tuple
    risks : ndarray of shape (n_candidates, n_folds)
        Risk on each fold of the machine that has not seen it, weights being searched without it, too.
    best : int
        The candidate of the least mean risk.
    """

    candidates: tuple[Any, ...]
    risks: Array
    best: int


class HierarchicalEstimator(BaseEstimator):
    """Base of the estimators; subclasses encode the targets."""

    architecture: Any
    subsets: Any
    loss: str
    lam: float
    folds: Any
    search: str
    search_size: int | None
    max_iter: int
    schedule: Schedule | None
    n_searches: int
    n_folds: int
    average_folds: bool
    clip: bool
    tol: float
    max_time: float | None
    warm_start: bool
    checkpoint: Any
    random_state: Any
    verbose: bool

    def _check_parameters(self) -> None:
        """Refuse what can be refused before there is data."""
        check_whole_number("n_searches", self.n_searches, low=1)
        check_whole_number("n_folds", self.n_folds, low=2)
        check_number("lam", self.lam, low=0.0, open_low=True)
        if self.search_size is not None:
            check_whole_number("search_size", self.search_size, low=4)
        check_whole_number("max_iter", self.max_iter, low=1)
        if self.schedule is not None and not isinstance(self.schedule, Schedule):
            raise InvalidInputError(f"schedule must be a Schedule or None, got {self.schedule!r}.")
        if self.max_time is not None:
            check_number("max_time", self.max_time, low=0.0, open_low=True, remedy="None means no limit.")
        if self.checkpoint is not None and not Path(self.checkpoint).absolute().parent.is_dir():
            raise InvalidInputError(f"checkpoint is {str(self.checkpoint)!r}, a file in a folder that does not exist.")

    # -- learning ----------------------------------------------------------------------------------

    def _scaled(self, table: TrainingTable, targets: Targets) -> tuple[Scaling, TrainingTable]:
        """Features on [-1, 1], targets encoded, equal rows merged."""
        rows = targets.encoded(table)
        scaling = Scaling.to_symmetric_box(rows.X)
        return scaling, rows.scaled(scaling).merged()

    def _problem(self, architecture: Any, X: Array, Y: Array, weights: Array, seed: int) -> HierarchicalLearning:
        return HierarchicalLearning(
            architecture,
            self.loss,
            X,
            Y,
            sample_weight=weights,
            clip=1.0 if self.clip else None,
            epsilon=getattr(self, "epsilon", 0.0),
            folds=self.folds,
            subsets=self.subsets,
            random_state=seed,
        )

    def _solve(
        self,
        problem: HierarchicalLearning,
        seed: int,
        seconds: float | None,
        start: Array | None = None,
        name: str = "",
    ) -> HierarchicalSolution:
        checkpoint = None
        if self.checkpoint is not None:
            file = Path(self.checkpoint)
            checkpoint = file.with_name(f"{file.stem}{name}{file.suffix}")
        return problem.solve(
            self.search,
            start=start,
            lam=self.lam,
            search_size=self.search_size,
            max_iter=self.max_iter,
            tol=self.tol,
            max_time=seconds,
            random_state=seed,
            progress=bool(self.verbose),
            checkpoint=checkpoint,
            schedule=PAPER_SCHEDULE if self.schedule is None else self.schedule,
        )

    def _learn(self, X: Array, Y: Array, weights: Array) -> None:
        """Choose the tree, search for its weights, train on all rows, and set the fitted attributes.

        Parameters
        ----------
        X : ndarray of shape (m, n)
            Scaled.
        Y : ndarray of shape (m, outputs)
            Within [-1, 1].
        weights : ndarray of shape (m,)
        """
        m = len(X)
        check_memory(
            8.0 * MATRICES * m * m,
            None,
            what=f"a kernel machine of {m} rows",
            remedy="Learn from a sample of the rows, or from cells: VoronoiRidge(estimator=...).",
        )
        seed = seed_from(self.random_state)
        candidates = as_candidates(self.architecture)
        for candidate in candidates:  # all of them are checked before the first is searched
            self._problem(candidate, X, Y, weights, seed)
        earlier = self._earlier_points() if self.warm_start else []
        self.choice_ = None
        fold_machines: list[Any] = []
        seconds = self.max_time
        if len(candidates) > 1 or self.average_folds:
            share = None if seconds is None else CHOICE_SHARE * seconds
            share = seconds if self.average_folds else share
            self.choice_, fold_machines, solutions = self._choose(candidates, X, Y, weights, seed, share)
            candidates = (candidates[self.choice_.best],)
            seconds = None if seconds is None or share is None else max(seconds - share, 1e-3)
        if not self.average_folds:
            solutions, fold_machines = self._search_all(candidates[0], X, Y, weights, seed, seconds, earlier)
        self.solutions_ = solutions
        self.solution_ = solutions[0]
        self.architecture_ = candidates[0]
        self.machine_: Any = fold_machines[0] if len(fold_machines) == 1 else AveragedMachine(fold_machines)
        self.n_iter_ = max(1, sum(solution.n_iter for solution in solutions))
        self._relevance = np.mean([_relevance(solution, X) for solution in solutions], axis=0)

    def _search_all(
        self,
        architecture: Any,
        X: Array,
        Y: Array,
        weights: Array,
        seed: int,
        seconds: float | None,
        earlier: Sequence[Array],
    ) -> tuple[list[HierarchicalSolution], list[Any]]:
        """Independent searches, each with its machine trained on all rows."""
        share = None if seconds is None else seconds / self.n_searches
        solutions = []
        for k in range(self.n_searches):
            problem = self._problem(architecture, X, Y, weights, seed + k)
            start = earlier[k] if k < len(earlier) and len(earlier[k]) == problem.tree.n_weights + 1 else None
            solutions.append(self._solve(problem, seed + k, share, start, name=f"-{k}" if k else ""))
        return solutions, [self._machine(solution) for solution in solutions]

    def _machine(self, solution: HierarchicalSolution) -> Any:
        """The machine of a solution, trained on all rows that its problem has."""
        return solution.problem.machine(solution.point)

    def _choose(
        self, candidates: Sequence[Any], X: Array, Y: Array, weights: Array, seed: int, seconds: float | None
    ) -> tuple[ArchitectureChoice, list[Any], list[HierarchicalSolution]]:
        """Cross-validate the architectures; returns the machines and searches of the folds of the best one, too."""
        folds = split_rows(Y, self.n_folds, np.random.default_rng(seed))
        share = None if seconds is None else seconds / (len(candidates) * len(folds))
        risks = np.empty((len(candidates), len(folds)))
        found: list[list[Any]] = []
        for i, candidate in enumerate(candidates):
            found.append([])
            for k, (train, validation) in enumerate(folds):
                problem = self._problem(candidate, X[train], Y[train], weights[train], seed)
                solution = self._solve(problem, seed + k, share, name=f"-candidate-{i}-fold-{k}")
                machine = self._machine(solution)
                losses, _ = problem.judge(Y[validation], problem.machine(solution.point).values(X[validation]))
                risks[i, k] = float(weights[validation] @ losses.mean(axis=1) / weights[validation].sum())
                found[-1].append((machine, solution))
        best = int(risks.mean(axis=1).argmin())
        machines, solutions = (list(part) for part in zip(*found[best], strict=True))
        return ArchitectureChoice(tuple(candidates), risks, best), machines, solutions

    def _earlier_points(self) -> list[Array]:
        return [solution.point for solution in getattr(self, "solutions_", [])]

    # -- what was learned --------------------------------------------------------------------------

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the first search on features as they were passed, a valid ``kernel=`` of scikit-learn's SVC."""
        check_is_fitted(self)
        return self.scaling_.pull_back(self.tree_)

    @property
    def tree_(self) -> HierarchicalGaussian:
        """The kernel of the first search, on features scaled to [-1, 1] without the constant ones."""
        check_is_fitted(self)
        kernel: HierarchicalGaussian = self.solution_.kernel
        return kernel

    @property
    def feature_relevance_(self) -> Array:
        """How much the kernel answers to each feature, shape (n_features,), sums to 1.

        ``sum_i |d mean k / d log w_ij|`` over the first-layer weights w_ij of feature j, the mean over pairs of rows
        learned from: what stretching the feature would do to the kernel. 0 for constant features.
        """
        check_is_fitted(self)
        relevance = np.zeros(len(self.scaling_.scale))
        relevance[self.scaling_.columns] = self._relevance
        return relevance

    def _outputs(self, X: Any) -> Array:
        """Values of the machine at new points, shape (n_samples, outputs)."""
        check_is_fitted(self)
        return np.asarray(self.machine_.values(self.scaling_.apply(read_points(self, X))))


def _relevance(solution: HierarchicalSolution, X: Array) -> Array:
    tree = solution.problem.tree
    rows = X[np.linspace(0, len(X) - 1, min(len(X), RELEVANCE_ROWS)).astype(np.intp)]
    evaluation = tree.evaluate(np.exp(2.0 * solution.point[:-1]), rows)
    slopes = np.abs(evaluation.gradient(np.full(evaluation.shape, 1.0 / len(rows) ** 2), lower=True))
    relevance = np.zeros(X.shape[1])
    for i in tree.leaves:
        np.add.at(relevance, list(tree.places[i].features), slopes[tree.places[i].weights])
    total = float(relevance.sum())
    return relevance / total if total > 0.0 else np.full(X.shape[1], 1.0 / X.shape[1])
