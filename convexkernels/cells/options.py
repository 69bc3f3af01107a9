"""What a user may say about the division of a table into cells."""

from collections.abc import Callable
from dataclasses import dataclass

from convexkernels.arrays import Array
from convexkernels.cells.cover import Cover, RandomChunks
from convexkernels.cells.covering import cell_size_within, tree_cover, voronoi_cover
from convexkernels.cells.sampling import Keys, rows_by_share
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.validation import check_number, check_whole_number

DEFAULT_CELL_SIZE = 2000
KINDS = ("overlapping", "voronoi", "tree", "random")


@dataclass(frozen=True)
class Cells:
    """How a table is divided into cells.

    Parameters
    ----------
    kind : {"overlapping", "voronoi", "tree", "random"}
        Voronoi cells that also learn from near points of their neighbors; Voronoi cells; cells divided again and
        again; random chunks of the table, whose functions are averaged (the baseline, [ZDW15]).
    radius : float, > 0, optional
        Of the balls that the cells lie in, on scaled features, instead of a size.
    overlap : float, >= 0
        For "overlapping": a point teaches the cells whose centers are at most ``1 + overlap`` times as far as the
        nearest one. A cell selects lam and the width on the points whose nearest center is its own, and trains on all.
    subset : int, optional
        Centers are sought among so many random points.
    time_budget, memory_budget : float, > 0, optional
        Seconds that the learning may take (estimated from small cells), bytes that one cell may take: the largest
        cells are used that keep both, instead of a size.
    scale : bool
        Scale every feature to [-1, 1] by its range in the table. False takes features as they are; the grid of widths
        is meant for about that range. A kernel that is given takes them as they are.
    gather : bool
        What becomes of functions that a Dask cluster learned: they are brought here, or stay there until
        ``model.function_ = model.function_.gather()``. Many and large ones should stay: predictions for Dask tables
        take them along.
    """

    kind: str = "overlapping"
    radius: float | None = None
    overlap: float = 0.1
    subset: int | None = 50_000
    time_budget: float | None = None
    memory_budget: float | None = None
    scale: bool = True
    gather: bool = True

    def check(self, max_cell_size: int | None) -> None:
        """Refuse bad parameters by name."""
        if self.kind not in KINDS:
            raise InvalidInputError(f"the kind of cells must be one of {KINDS}, got {self.kind!r}.")
        budgets = {"time_budget": self.time_budget, "memory_budget": self.memory_budget}
        sizes = {"radius": self.radius, "max_cell_size": max_cell_size}
        named = [name for name, value in sizes.items() if value is not None]
        if len(named) == 2 or (named and any(value is not None for value in budgets.values())):
            raise InvalidInputError(
                f"give radius, or max_cell_size, or budgets, got {sizes | budgets}; the others have to be None."
            )
        for name, value in {"radius": self.radius, **budgets}.items():
            if value is not None:
                check_number(name, value, low=0.0, open_low=True, remedy="None leaves it open.")
        if max_cell_size is not None:
            check_whole_number("max_cell_size", max_cell_size, low=2, remedy="One point alone teaches nothing.")
        if self.radius is not None and self.kind in ("tree", "random"):
            raise InvalidInputError(
                f"radius={self.radius} goes with cells 'voronoi' or 'overlapping', got {self.kind!r}; give "
                "max_cell_size instead."
            )
        check_number("overlap", self.overlap, low=0.0)
        if self.subset is not None:
            check_whole_number("subset", self.subset, low=2)

    def cover(
        self,
        X: Array,
        keys: Keys,
        max_cell_size: int | None,
        *,
        seconds_of: Callable[[], Callable[[int], float]],
        bytes_of: Callable[[int], float],
        seed: int,
        n_rows: int | None = None,
        kernel: Kernel | None = None,
    ) -> Cover:
        """The cover of scaled points, or of `n_rows` that these are a sample of.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
        keys : ndarray of shape (m,)
            By which rows are drawn.
        max_cell_size : int or None
            2000 where nothing else says how large cells are.
        seconds_of : callable
            Measures, when it is called, what a cell costs by its number of points.
        bytes_of : callable
        seed : int
        n_rows : int, optional
        kernel : Kernel, optional
            In whose geometry cells are Voronoi cells.
        """
        size, n_rows = max_cell_size, n_rows or len(X)
        if self.kind != "random" and self.subset is not None and self.subset < len(X):
            n_rows = rows_by_share(keys, self.subset)
        if self.time_budget is not None or self.memory_budget is not None:
            size = cell_size_within(
                X,
                time_budget=self.time_budget,
                memory_budget=self.memory_budget,
                seconds_of=float if self.time_budget is None else seconds_of(),
                bytes_of=bytes_of,
                n_rows=n_rows,
                kernel=kernel,
                keys=keys,
            )
        elif self.radius is None and size is None:
            size = DEFAULT_CELL_SIZE
        if self.kind == "random":
            return RandomChunks(-(-n_rows // int(size or DEFAULT_CELL_SIZE)), seed)
        if self.kind == "tree":
            most = int(size or DEFAULT_CELL_SIZE)
            return tree_cover(X, max_cell_size=most, subset=self.subset, n_rows=n_rows, keys=keys)
        return voronoi_cover(
            X,
            radius=self.radius,
            max_cell_size=size,
            overlap=self.overlap if self.kind == "overlapping" else 0.0,
            subset=self.subset,
            n_rows=n_rows,
            kernel=kernel,
            keys=keys,
        )
