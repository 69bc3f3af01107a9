"""How functions with a learned kernel are trained on all rows: one matrix, products with it, cells, or landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs

from convexkernels.cells.options import Cells
from convexkernels.certificate import DualityGap
from convexkernels.clock import Clock
from convexkernels.exceptions import InvalidInputError
from convexkernels.losses.least_squares import LeastSquares
from convexkernels.problems.fixed_kernel import FixedKernel
from convexkernels.problems.outer_learning import OuterLearning
from convexkernels.solution import Status
from convexkernels.solvers.convex.feature_scale import ROWS
from convexkernels.solvers.nonconvex.stochastic import LARGEST_SAMPLE
from convexkernels.validation import available_memory, check_memory, check_number, check_whole_number

METHODS = ("auto", "dense", "iterative", "cells", "landmarks")
# Rows up to which one matrix is factorized, or met by products with it.
DENSE_ROWS, ITERATIVE_ROWS = 10_000, 50_000
# Square matrices of float64 that are alive while functions are trained.
MATRICES = 3
# Share of the memory that matrices of cells at work may take, how many of a cell are alive, and how many times as many
# rows as it predicts for the largest one learns from.
CELL_SHARE, CELL_MATRICES, LARGEST = 0.25, 4, 1.5
# Most rows that a cell predicts for.
CELL_SIZE = 4000
# Copies of the table that are alive while it is scaled, merged and divided, and entries of the distances between rows
# and centers at a time, of which there are so many arrays.
TABLES, DISTANCES, DISTANCE_ARRAYS = 5, 2**21, 4
# Share of the memory that copies of the rows of a Dask table which are brought here may take.
PARTS_SHARE = 0.5
# Rows that the time of a training is measured on: of fewer, what grows with the entries hides what grows faster.
TIMED_ROWS = 1000
# Rows that a cell predicts for and learns from, as shares of the most that it may predict for: so they come out.
OWN_ROWS, CELL_ROWS = 0.55, 0.7
# How many times the functions of cells keep a row: once in every cell that learns from it.
KEPT_ROWS = CELL_ROWS / OWN_ROWS
# Rows that a search draws from: steps by default look at fewer, so that none comes twice.
SEARCH_ROWS = 100_000
# What precedes cells, in trainings on as many rows as a cell has, but not more than these: lam and width for all of
# them, selected twice, and the refinement of the kernel.
PREPARATION, PREPARED_ROWS = 80, 1500
# What the choice of a kernel for all rows takes, in trainings on the rows that it looks at.
CHOICE_TRAININGS = 3.0
# Most landmarks, the share of the memory that features may take, and how often they are alive.
LANDMARKS, FEATURE_SHARE, FEATURES = 1000, 0.5, 3
# Trainings on landmarks: of every lam that is tried, in closed form, and of the function; a product of features with
# themselves takes so many times as long as a factorization of their size.
LANDMARK_LAMS, PRODUCTS = 5, 10.0
REMEDY = "Pass multi_class='one-vs-all' and AllRows(), which learns in cells, or a sample of the rows."
CELL_REMEDY = "Pass a smaller max_cell_size, a larger memory_limit, or a sample of the rows."
PARTS_REMEDY = (
    "Pass a larger memory_limit; or leave the functions on the cluster: fit this estimator to some rows, and "
    "VoronoiRidge or VoronoiSVC(kernel=model.kernel_, cells=Cells(gather=False)) to the Dask table."
)
# Share of the seconds of a plan from which on there is time for its choices: it is known within a factor of about 2.
ENOUGH = 0.75


@dataclass(frozen=True)
class AllRows:
    """How the functions are trained on all rows, once the kernel is learned.

    Parameters
    ----------
    method : {"auto", "dense", "iterative", "cells", "landmarks"}
        One kernel matrix, factorized; products with it (:class:`convexkernels.FixedKernel`; not for the logistic loss);
        cells in the geometry of the kernel, each with a matrix of its own; or what random landmarks see of the kernel
        (:class:`convexkernels.Nystrom`). "auto" takes the first that rows, memory and time allow: the
        matrix up to 10,000 rows, products of least squares up to 50,000.
    memory_limit : float, > 0, optional
        Bytes that the training may take; the free memory when it begins, if not given.
    max_cell_size : int, >= 2, optional
        Rows that a cell predicts for, at most; 4,000, or fewer where memory asks for it.
    cells : Cells, optional
        Kind and overlap of the cells; overlapping by 0.02 when not given.
    n_jobs : int, optional
        Processes that share the cells, as joblib counts them.
    n_landmarks : int, >= 1, optional
        1,000, or fewer where memory asks for it.
    """

    method: str = "auto"
    memory_limit: float | None = None
    max_cell_size: int | None = None
    cells: Cells | None = None
    n_jobs: int | None = None
    n_landmarks: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidInputError(f"method must be one of {METHODS}, got {self.method!r}.")
        if self.memory_limit is not None:
            check_number("memory_limit", self.memory_limit, low=0.0, open_low=True)
        if self.max_cell_size is not None:
            check_whole_number("max_cell_size", self.max_cell_size, low=2)
        if self.n_landmarks is not None:
            check_whole_number("n_landmarks", self.n_landmarks, low=1)
        if not isinstance(self.cells, Cells | None):
            raise InvalidInputError(f"cells must be None or Cells(...), got {self.cells!r}.")
        if self.cells is not None:
            self._check_cells(self.cells)

    def _check_cells(self, cells: Cells) -> None:
        cells.check(self.max_cell_size)
        others = cells.radius, cells.time_budget, cells.memory_budget
        if cells.kind not in ("overlapping", "voronoi") or any(value is not None for value in others):
            raise InvalidInputError(
                f"cells must be 'overlapping' or 'voronoi', of a max_cell_size, got {cells!r}; for others see "
                "VoronoiRidge and VoronoiSVC with the kernel_ that was learned."
            )

    def memory(self, of_thread: float) -> tuple[float, float]:
        """Bytes that may be taken here, and by a thread of a cluster that may take so many."""
        here = available_memory() if self.memory_limit is None else float(self.memory_limit)
        return here, min(of_thread, here)

    def check_gathered(self) -> None:
        """Refuse functions that stay on a cluster."""
        if self.cells is not None and not self.cells.gather:
            raise InvalidInputError(
                "functions of hierarchical estimators are brought here, but cells have gather=False; pass gather=True, "
                "or fit VoronoiRidge or VoronoiSVC(kernel=model.kernel_, cells=Cells(gather=False)) to the Dask table."
            )

    def check_parts(self, combine: str, votes: bool) -> None:
        """Refuse what needs all rows of a Dask table here."""
        refused = {
            f"method={self.method!r} of AllRows": (self.method in ("auto", "cells"), "AllRows('cells')"),
            f"combine={combine!r} of TreeSelection": (combine in ("auto", "one"), "combine='one'"),
            "multi_class='all-vs-all'": (not votes, "multi_class='one-vs-all'"),
        }
        for what, (is_possible, instead) in refused.items():
            if not is_possible:
                raise InvalidInputError(
                    f"{what} is for tables in memory, and there are more rows in the Dask table than are brought here; "
                    f"pass {instead}, or X.compute()."
                )

    def check_votes(self) -> None:
        """Refuse ways to train that have no functions of pairs of classes."""
        if self.method not in ("auto", "dense"):
            raise InvalidInputError(
                f"method={self.method!r} of AllRows is not for multi_class='all-vs-all', whose functions of pairs have "
                "one matrix each; pass multi_class='one-vs-all', or AllRows('dense')."
            )

    def plan(self, problem: OuterLearning, time_left: float | None, takes: TrainingTime, votes: bool) -> Plan:
        """What suits a problem, within memory and time.

        Parameters
        ----------
        problem : OuterLearning
        time_left : float or None
            Seconds; None for no limit.
        takes : TrainingTime
        votes : bool
            Whether every pair of classes has a function, which needs one matrix.

        Raises
        ------
        MemoryLimitError
            Where what is asked for does not fit, or nothing does.
        """
        m, allowed = problem.m, available_memory() if self.memory_limit is None else float(self.memory_limit)
        dense = Plan("dense", m, 8.0 * MATRICES * m * m, takes(m), "as asked for")
        if votes or self.method == "dense":
            check_memory(dense.bytes, allowed, what=f"a kernel matrix of {m} rows", remedy=REMEDY)
            return replace(dense, why="every pair of classes has a function") if votes else dense
        if self.method != "auto":
            return self._as_asked_for(problem, allowed, takes)
        cells = self._in_cells(problem, allowed, takes)
        limit = None if cells.seconds > 0.5 * dense.seconds else time_left  # of few cells nothing is gained
        why = dense.refusal(DENSE_ROWS, allowed, limit)
        if not why:
            return replace(dense, why=f"{m} rows, not more than {DENSE_ROWS}")
        if isinstance(problem.loss, LeastSquares) and m <= ITERATIVE_ROWS:
            iterative = self._iterative(problem)
            iterative = replace(iterative, bytes=max(iterative.bytes, float(m) ** 2))  # half of the triangle is held
            refused = iterative.refusal(ITERATIVE_ROWS, allowed, limit)
            if not refused:
                return replace(iterative, why=why)
            why = f"{why}; {refused}"
        refused, landmarks = cells.refusal(m, allowed, time_left), self._landmarks(problem, allowed, takes)
        is_better = landmarks.seconds < cells.seconds or cells.bytes > allowed
        if refused and landmarks.bytes <= allowed and is_better:
            return replace(landmarks, why=f"{why}; {refused}")
        return replace(cells.checked(allowed), why=why)

    def _as_asked_for(self, problem: OuterLearning, allowed: float, takes: TrainingTime) -> Plan:
        """Products, cells or landmarks, refused where they do not fit."""
        if self.method == "iterative":
            return self._iterative(problem).checked(allowed)
        make = self._in_cells if self.method == "cells" else self._landmarks
        return make(problem, allowed, takes).checked(allowed)

    def _landmarks(self, problem: OuterLearning, allowed: float, takes: TrainingTime) -> Plan:
        """Features that landmarks make, as many as half of the memory bears."""
        m = problem.m
        fits = max(1, min(m, LANDMARKS, int(FEATURE_SHARE * allowed / (8.0 * FEATURES * m))))
        n = fits if self.n_landmarks is None else min(m, self.n_landmarks)
        seconds = m * n * (FEATURES * takes.entry + (LANDMARK_LAMS + 1) * PRODUCTS * takes.cube * n)
        return Plan("landmarks", m, 8.0 * FEATURES * m * n, seconds, "as asked for", n_landmarks=n)

    def _iterative(self, problem: OuterLearning) -> Plan:
        """Products with the matrix of any kernel of the family, of which is held what the memory bears."""
        loss, points = problem.loss, (problem.X, problem.Y.T)
        kernel, device = problem.kernel(problem.start(0)), problem.family.device
        forecast = FixedKernel(kernel, loss, *points, memory_limit=self.memory_limit, device=device).forecast()
        chooses = isinstance(loss, LeastSquares) and problem.m > LARGEST_SAMPLE
        choice = CHOICE_TRAININGS * forecast.seconds * min(1.0, ROWS / problem.m) ** 2 if chooses else 0.0
        seconds = forecast.seconds + choice
        return Plan("iterative", problem.m, forecast.bytes, seconds, "as asked for", choice_seconds=choice)

    def _in_cells(self, problem: OuterLearning, allowed: float, takes: TrainingTime) -> Plan:
        """Cells that a quarter of the memory bears the matrices of, or as large as they are asked for."""
        m, k, jobs = problem.m, len(problem.Y), effective_n_jobs(self.n_jobs)
        size = self._size(m, allowed, jobs)
        row, n_cells = problem.X.shape[1] + k + 1, max(1.0, m / (OWN_ROWS * size))
        kept = TABLES * row + KEPT_ROWS * (row + k)
        matrices = jobs * CELL_MATRICES * min(float(m), LARGEST * size) ** 2
        needed = 8.0 * (m * kept + matrices + DISTANCE_ARRAYS * min(m * n_cells, DISTANCES))
        return Plan("cells", m, needed, self._seconds_of_cells(m, size, takes, jobs), "as asked for", size)

    def plan_in_parts(
        self, problem: OuterLearning, n_rows: int, takes: TrainingTime, why: str, threads: int, memory: float
    ) -> Plan:
        """Cells of a Dask table of so many rows, of which a problem has some.

        A quarter of what a thread of the cluster may take bears the matrices of a cell; here is what functions keep,
        beside copies of the rows of the problem. Either is refused where it does not fit.
        """
        here, there = self.memory(memory)
        size, k, row = self._size(n_rows, there, 1), len(problem.Y), problem.X.shape[1] + len(problem.Y) + 1
        matrices = 8.0 * CELL_MATRICES * min(float(n_rows), LARGEST * size) ** 2
        kept = 8.0 * (TABLES * problem.m * row + KEPT_ROWS * n_rows * (row + k))
        check_memory(matrices, there, what=f"a cell on a cluster with max_cell_size={size}", remedy=CELL_REMEDY)
        check_memory(kept, here, what=f"functions of {n_rows} rows that are brought here", remedy=PARTS_REMEDY)
        seconds = self._seconds_of_cells(n_rows, size, takes, threads)
        return Plan("cells", n_rows, max(matrices, kept), seconds, why, size)

    def _seconds_of_cells(self, m: int, size: int, takes: TrainingTime, jobs: int) -> float:
        """What cells take, about: their trainings, a look from every row to every center, and what precedes them."""
        n_cells = max(1.0, m / (OWN_ROWS * size))
        trained = n_cells * takes(min(m, CELL_ROWS * size)) / jobs
        return trained + takes.entry * n_cells * m + PREPARATION * takes(min(m, size, PREPARED_ROWS))

    def _size(self, m: int, allowed: float, jobs: int) -> int:
        """Rows that a cell predicts for, at most."""
        if self.max_cell_size is not None:
            return self.max_cell_size
        fits = np.sqrt(CELL_SHARE * allowed / (jobs * CELL_MATRICES * 8.0))
        return int(max(2, min(m, CELL_SIZE, fits / LARGEST)))


@dataclass(frozen=True)
class TrainingTime:
    """What the functions of a kernel take to be trained on m rows: ``entry m^2 + cube m^3`` seconds."""

    entry: float = 0.0
    cube: float = 0.0

    def __call__(self, m: float) -> float:
        """Seconds for m rows."""
        return self.entry * m**2 + self.cube * m**3


@dataclass(frozen=True, eq=False)
class Plan:
    """How the functions were trained on all rows, and why.

    Attributes
    ----------
    method : {"dense", "iterative", "cells", "landmarks"}
        One kernel matrix, factorized; products with it; cells in the geometry of the learned kernel; or landmarks.
    n_rows : int
        Rows that were learned from, equal ones counting once.
    bytes, seconds : float
        What that takes, as it was estimated.
    why : str
    max_cell_size : int or None
        Rows that a cell predicts for, at most.
    certificate : DualityGap or None
        The worst one of all cells, once they are trained; of one matrix the equations are solved. Of landmarks that
        of the problem with the kernel that they see, which says nothing of the kernel itself.
    n_landmarks : int or None
    choice_seconds : float
        Of `seconds`, those of the choice of a kernel for all rows, which is left out where time is short.
    status : Status or None
        INTERRUPTED or TIME_LIMIT where that left time for some of the rows only.
    """

    method: str
    n_rows: int
    bytes: float
    seconds: float
    why: str
    max_cell_size: int | None = None
    certificate: DualityGap | None = None
    n_landmarks: int | None = None
    choice_seconds: float = 0.0
    status: Status | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The status by its name, as that of a solution.
        return {**self.__dict__, "status": self.status and self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=state["status"] and Status[state["status"]])

    def checked(self, allowed: float) -> Self:
        """Itself, or a refusal where so many bytes are not enough."""
        size, remedy = "", REMEDY
        if self.max_cell_size is not None:
            size, remedy = f" with max_cell_size={self.max_cell_size}", CELL_REMEDY
        check_memory(self.bytes, allowed, what=f"{self.method} training on {self.n_rows} rows{size}", remedy=remedy)
        return self

    def has_time(self, clock: Clock) -> bool:
        """Whether there is about as much time left as all of it takes."""
        return clock.left is None or clock.left >= ENOUGH * self.seconds

    def refusal(self, most_rows: int, allowed: float, time_left: float | None) -> str:
        """Why it cannot be done with so many bytes and seconds; empty where it can."""
        if self.bytes > allowed:
            needs = f"needs {self.bytes / 2**30:.3g} GiB, of which there are {allowed / 2**30:.3g}"
            return f"{self.method} training on {self.n_rows} rows {needs}"
        seconds = self.seconds - self.choice_seconds
        if time_left is not None and seconds > time_left:
            takes = f"takes about {seconds:.0f} s, of which {time_left:.0f} are left"
            return f"{self.method} training on {self.n_rows} rows {takes}"
        return f"{self.n_rows} rows, more than {most_rows}" if self.n_rows > most_rows else ""

    def __repr__(self) -> str:
        size = "" if self.max_cell_size is None else f" of at most {self.max_cell_size} rows"
        size += "" if self.n_landmarks is None else f", {self.n_landmarks} of them"
        gap = "" if self.certificate is None else f"; relative gap {self.certificate.relative_gap:.1e} at most"
        gap += "" if self.n_landmarks is None or not gap else ", of the problem that landmarks approximate"
        return f"Plan({self.method}{size}: {self.why}; about {self.bytes / 2**30:.2g} GiB, {self.seconds:.0f} s{gap})"
