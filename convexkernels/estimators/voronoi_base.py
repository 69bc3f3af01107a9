"""What the estimators with one machine per cell share: scaling, cover, cells, and any learner in a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from convexkernels.estimators.base import Scaling, TableReader
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.gaussian import Gaussian
from convexkernels.kernels.localized import Localized
from convexkernels.partition.cover import Cover, RandomChunks, VoronoiCover
from convexkernels.partition.covering import cell_size_within, tree_cover, voronoi_cover
from convexkernels.partition.machines import CellLearner, CellMachine, GaussianLearner
from convexkernels.partition.training import LocalizedMachines, learn_cells, seconds_by_size
from convexkernels.validation import check_number, check_whole_number

__all__ = ["ClassifierLearner", "RegressorLearner", "VoronoiEstimator", "to_symmetric_box"]

Array = NDArray[np.float64]

DEFAULT_CELL_SIZE = 2000
PARTITIONS = ("voronoi", "tree", "overlapping", "random")


def to_symmetric_box(X: Array) -> Scaling:
    """The scaling that takes every column of `X` onto [-1, 1] and leaves constant columns out."""
    unit = Scaling.to_unit_box(X)
    return Scaling(unit.offset + 0.5 * unit.scale, 0.5 * unit.scale, unit.columns)


@dataclass(frozen=True, eq=False)
class RegressorLearner:
    """A clone of a scikit-learn regressor in every cell; its targets have the units of the table."""

    estimator: Any
    fallback: GaussianLearner

    def learn(self, X: Array, Y: Array, weights: Array, rng: np.random.Generator) -> Any:
        """Fit a clone, or take a constant where there is nothing to learn."""
        if len(X) == 1 or (Y[:, :1] == Y).all():
            return self.constant(Y, weights)
        model = _fitted(clone(self.estimator), X, Y[0], weights)
        return _RegressorCell(model, self.fallback.clip)

    def constant(self, Y: Array, weights: Array) -> CellMachine:
        """The best constant."""
        return self.fallback.constant(Y, weights)


@dataclass(frozen=True, eq=False)
class ClassifierLearner:
    """A clone of a scikit-learn classifier in every cell, on the classes that the cell has."""

    estimator: Any
    fallback: GaussianLearner

    def learn(self, X: Array, Y: Array, weights: Array, rng: np.random.Generator) -> Any:
        """Fit a clone, or take a constant in a cell of one class."""
        codes = (Y[0] > 0).astype(np.intp) if len(Y) == 1 else Y.argmax(axis=0)
        if (codes == codes[0]).all():
            return self.constant(Y, weights)
        return _ClassifierCell(_fitted(clone(self.estimator), X, codes, weights), len(Y))

    def constant(self, Y: Array, weights: Array) -> CellMachine:
        """The majority."""
        return self.fallback.constant(Y, weights)


@dataclass(frozen=True, eq=False)
class _RegressorCell:
    model: Any
    clip: float

    def values(self, X: Array) -> Array:
        return np.clip(np.asarray(self.model.predict(X), dtype=np.float64)[:, None], -self.clip, self.clip)


@dataclass(frozen=True, eq=False)
class _ClassifierCell:
    model: Any
    n_machines: int

    def values(self, X: Array) -> Array:
        F = np.asarray(self.model.decision_function(X), dtype=np.float64)
        if self.n_machines == 1:
            return F.reshape(-1, 1)
        if F.ndim == 1:
            F = np.column_stack([-F, F])
        # Classes the cell has not seen lose against all others.
        values = np.repeat(np.minimum(-1.0, F.min(axis=1, keepdims=True) - 1.0), self.n_machines, axis=1)
        values[:, self.model.classes_] = F
        return values


def _fitted(model: Any, X: Array, y: NDArray[Any], weights: Array) -> Any:
    """Fit with weights where they say something; then the learner has to take them."""
    return model.fit(X, y) if (weights == weights[0]).all() else model.fit(X, y, sample_weight=weights)


class VoronoiEstimator(TableReader):
    """Base of the estimators with one machine per cell; subclasses encode the targets."""

    radius: float | None
    max_cell_size: int | None
    time_budget: float | None
    memory_budget: float | None
    partition: str
    overlap: float
    subset: int | None
    validation: Any
    n_lams: int
    n_widths: int
    rank: int
    tol: float
    estimator: Any
    random_state: Any
    n_jobs: int | None
    max_time: float | None
    verbose: bool

    # The loss of the machines, unless a parameter names it.
    _loss_name = "least_squares"

    def _gaussian_learner(self) -> GaussianLearner:
        learner = GaussianLearner(
            getattr(self, "loss", self._loss_name),
            self.validation,
            self.n_lams,
            self.n_widths,
            self.rank,
            getattr(self, "epsilon", 0.0),
            getattr(self, "quantile", 0.5),
            tol=self.tol,
        )
        learner.check()
        return learner

    def _cell_learner(self) -> CellLearner:
        gaussian = self._gaussian_learner()
        if self.estimator is None:
            return gaussian
        if not hasattr(self.estimator, "fit") or not isinstance(self.estimator, BaseEstimator):
            raise InvalidInputError(f"estimator must be an estimator object or None, got {self.estimator!r}.")
        return self._wrapped(gaussian)

    def _wrapped(self, gaussian: GaussianLearner) -> CellLearner:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        if self.partition not in PARTITIONS:
            raise InvalidInputError(f"partition must be one of {PARTITIONS}, got {self.partition!r}.")
        sizes = {"radius": self.radius, "max_cell_size": self.max_cell_size}
        budgets = {"time_budget": self.time_budget, "memory_budget": self.memory_budget}
        named = [name for name, value in sizes.items() if value is not None]
        if len(named) == 2 or (named and any(value is not None for value in budgets.values())):
            raise InvalidInputError(
                f"give radius, or max_cell_size, or budgets, got {sizes | budgets}; the others have to be None."
            )
        for name, value in {"radius": self.radius, **budgets, "max_time": self.max_time}.items():
            if value is not None:
                check_number(name, value, low=0.0, open_low=True, remedy="None leaves it open.")
        if self.max_cell_size is not None:
            check_whole_number("max_cell_size", self.max_cell_size, low=2, remedy="One point alone teaches nothing.")
        if self.radius is not None and self.partition in ("tree", "random"):
            raise InvalidInputError(
                f"radius={self.radius} goes with partition 'voronoi' or 'overlapping', got {self.partition!r}; give "
                "max_cell_size instead."
            )
        check_number("overlap", self.overlap, low=0.0)
        if self.subset is not None:
            check_whole_number("subset", self.subset, low=2)

    def _make_cover(self, X: Array, Y: Array, weights: Array, learner: CellLearner, seed: int) -> Cover:
        """The cover that the parameters ask for, of scaled points."""
        size = self.max_cell_size
        if self.time_budget is not None or self.memory_budget is not None:
            timed = self.time_budget is not None
            rng = np.random.default_rng(seed)
            seconds = seconds_by_size(X, Y, weights, learner, rng) if timed else float
            size = cell_size_within(
                X,
                time_budget=self.time_budget,
                memory_budget=self.memory_budget,
                seconds_of=seconds,
                bytes_of=self._gaussian_learner().bytes_of,
                random_state=seed,
            )
        elif self.radius is None and size is None:
            size = DEFAULT_CELL_SIZE
        if self.partition == "random":
            return RandomChunks(-(-len(X) // int(size or DEFAULT_CELL_SIZE)), seed)
        if self.partition == "tree":
            return tree_cover(X, max_cell_size=int(size or DEFAULT_CELL_SIZE), subset=self.subset, random_state=seed)
        overlap = self.overlap if self.partition == "overlapping" else 0.0
        return voronoi_cover(
            X, radius=self.radius, max_cell_size=size, overlap=overlap, subset=self.subset, random_state=seed
        )

    def _learn_cells(self, X: Array, Y: Array, weights: Array, learner: CellLearner) -> None:
        """Cover the scaled points, learn in every cell, and set the fitted attributes."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        cover = self._make_cover(X, Y, weights, learner, seed)
        self.machines_: LocalizedMachines = learn_cells(
            X,
            Y,
            weights,
            cover,
            learner,
            seed=seed,
            n_jobs=self.n_jobs,
            max_time=self.max_time,
            progress=bool(self.verbose),
        )
        self.cover_ = cover
        self.n_cells_ = cover.n_cells

    def _values(self, X: Any) -> Array:
        """Values at new points, shape (n_samples, n_machines), in the units of the machines."""
        points = self._new_points(X)
        return self.machines_.values(self.scaling_.apply(points))

    @property
    def kernel_(self) -> Kernel:
        """The kernel on the table with which one machine, at price 1, is the machines of all cells.

        Raises
        ------
        InvalidInputError
            For covers and learners that have none.
        """
        check_is_fitted(self)
        cover = self.cover_
        machines = self.machines_.machines
        if type(cover) is not VoronoiCover or not all(isinstance(m, CellMachine) for m in machines):
            raise InvalidInputError(
                f"a localized kernel belongs to Voronoi cells with Gaussian machines, got {cover!r} and "
                f"{type(machines[0]).__name__}; use partition='voronoi' and estimator=None."
            )
        # A constant machine has no kernel of its own; any will do.
        kernels = [Gaussian(1.0 / m.width**2 if np.isfinite(m.width) else 1.0) for m in machines]
        prices = [m.price if np.isfinite(m.price) else 1.0 for m in machines]
        return self.scaling_.pull_back(Localized(cover.centres, kernels, prices))
