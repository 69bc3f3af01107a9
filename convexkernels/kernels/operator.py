"""Products with the Gram matrix of many points, of which no more is held than fits."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.backend import Backend, to_numpy
from convexkernels.exceptions import InvalidInputError
from convexkernels.few_vectors import add_tile_products, is_few
from convexkernels.kernels.base import Kernel
from convexkernels.linalg import flush

# Rows of a tile: in float32 it takes a megabyte, which stays in the cache of one core for both products with it.
TILE = 512
# Most of them on a device, where 64 megabytes take the time of some calls.
DEVICE_TILE = 4096
# Parts that the tiles are dealt out in: threads share them, and between two of them the clock is looked at.
PARTS = 32

Tile = tuple[int, slice, slice]


class OutOfTimeError(Exception):
    """The time was up before a product was complete."""


class OverflowingTilesError(InvalidInputError):
    """Products are beyond the type of the tiles."""


class GramOperator:
    """``V -> V K`` for the Gram matrix of one kernel on one table, tile by tile of its lower triangle.

    Tiles are evaluated when they are first needed, and kept as long as they fit in `memory`, bytes; others are
    evaluated again for every product. `dtype` is that of the tiles and of the products with one of them; what they
    contribute is added up in float64. With a `device` of PyTorch they live there.
    """

    def __init__(
        self, kernel: Kernel, X: Array, dtype: Any = np.float32, memory: float = 0.0, device: Any = None
    ) -> None:
        self.kernel, self.X, self.dtype, self.device = kernel, X, np.dtype(dtype), device
        self.backend = Backend(self.dtype.name, device)
        self._block = kernel.blocks(X, self.dtype, device)
        self.side = tile_side(len(X), device)
        self._parts = _dealt(len(X), self.side)
        # Tiles at the ends are smaller: a table of one tile takes what it is.
        side = min(self.side, len(X))
        self.n_kept = int(min(n_tiles(len(X), self.side), memory // (self.dtype.itemsize * side**2)))
        shape = (self.n_kept, side, side)
        self._kept = self.backend.xp.empty(shape, dtype=self.backend.dtype, device=self.backend.device)
        self._known = np.zeros(self.n_kept, dtype=bool)

    @property
    def m(self) -> int:
        """Number of points."""
        return len(self.X)

    @property
    def share_kept(self) -> float:
        """Share of the tiles that are kept once they have been evaluated."""
        return self.n_kept / n_tiles(self.m, self.side)

    @property
    def kept_bytes(self) -> int:
        """Bytes of the tiles that are kept."""
        return int(self._kept.nbytes)

    def diagonal(self) -> Array:
        """``k(x_i, x_i)``, shape (m,)."""
        return self.kernel.diag(self.X)

    def rows(self, index: Index) -> Array:
        """Some rows of the matrix in float64, shape (n_rows, m)."""
        if self.device is None:
            return self.kernel(self.X[index], self.X)
        # Blocks are those of one table: of these rows before all of them.
        block = self.kernel.blocks(np.vstack([self.X[index], self.X]), np.float64, self.device)
        return np.asarray(to_numpy(block(slice(0, len(index)), slice(len(index), len(index) + self.m))))

    def product(
        self, V: Array, deadline: float | None = None, tell: Callable[[float], Any] = lambda share: None
    ) -> Array:
        """``V K`` in float64, shape (k, m): one look at every tile for all rows of `V`.

        `tell` hears now and then which share is done. OutOfTimeError where the deadline, by ``time.monotonic()``, comes
        first; values that overflow the type of the tiles are refused.
        """
        if V.ndim != 2 or V.shape[1] != self.m:  # loops look at no shapes
            raise InvalidInputError(f"V must have shape (k, {self.m}), a row for each function; got {V.shape}.")
        (k, m), xp, few = V.shape, self.backend.xp, self.device is None and is_few(len(V))
        with np.errstate(over="ignore"):  # refused below
            right = self.backend.array(V if few else V.T)
        if not right.any():
            return np.zeros(V.shape)
        done = 0

        def zeros() -> Any:
            return xp.zeros((k, m) if few else (m, k), dtype=self.backend.double, device=self.backend.device)

        def work(part: list[Tile]) -> Any:
            nonlocal done
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTimeError
            F = zeros()
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                for number, rows, columns in part:
                    tile = self._tile(number, rows, columns)
                    if few:
                        add_tile_products(rows.start, columns.start, np.ascontiguousarray(tile), right, F)
                        continue
                    F[rows] += tile @ right[columns]
                    if rows != columns:
                        F[columns] += tile.T @ right[rows]
            float(F[0, 0])  # a device only queues what it is asked for: reading a number waits until it is done
            done += 1
            tell(done / len(self._parts))
            return F

        total = zeros()
        with np.errstate(invalid="ignore"):
            for part in self.backend.each(work, self._parts):
                total += part
        F = to_numpy(total)
        if not np.isfinite(F).all():
            raise OverflowingTilesError(
                f"products with the kernel matrix overflow {self.dtype.name}; rescale the kernel or the targets."
            )
        return np.ascontiguousarray(F if few else F.T)

    def square(
        self, index: Index, deadline: float | None = None, tell: Callable[[float], Any] = lambda share: None
    ) -> Array:
        """The matrix on some rows, shape (n_rows, n_rows), in the type of the tiles; arguments as for `product`."""
        K = np.empty((len(index), len(index)), dtype=self.dtype)
        block = self.kernel.blocks(self.X[index], self.dtype, self.device)
        parts, done = _dealt(len(index), tile_side(len(index), self.device)), 0

        def work(part: list[Tile]) -> None:
            nonlocal done
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTimeError
            for _, rows, columns in part:
                K[rows, columns] = to_numpy(block(rows, columns))
                if rows != columns:
                    K[columns, rows] = K[rows, columns].T
            done += 1
            tell(done / len(parts))

        with np.errstate(over="ignore"):  # refused below
            self.backend.each(work, parts)
        if not np.isfinite(np.diagonal(K)).all():  # no other entry is larger than the largest of these
            raise InvalidInputError(f"the kernel matrix overflows {self.dtype.name}; rescale the kernel.")
        return K

    def _tile(self, number: int, rows: slice, columns: slice) -> Any:
        if number < self.n_kept and self._known[number]:
            return self._kept[number, : rows.stop - rows.start, : columns.stop - columns.start]
        tile = self._block(rows, columns)
        if self.device is None:  # products with subnormal numbers take ten to thirty times as long
            flush(tile, float(np.finfo(self.dtype).tiny))
        if number < self.n_kept:
            self._kept[number, : rows.stop - rows.start, : columns.stop - columns.start] = tile
            self._known[number] = True
        return tile


def tile_side(m: int, device: Any = None) -> int:
    """Rows of a tile of m points: on a device they are large, and all about as large."""
    return TILE if device is None else -(-m // -(-m // DEVICE_TILE))


def n_tiles(m: int, side: int = TILE) -> int:
    """Number of tiles of the lower triangle of m points."""
    count = -(-m // side)
    return count * (count + 1) // 2


def _dealt(m: int, side: int) -> list[list[Tile]]:
    """The tiles of the lower triangle in parts of about equal size, numbered in the order of the parts."""
    edges = [slice(start, min(start + side, m)) for start in range(0, m, side)]
    tiles = [(rows, columns) for i, rows in enumerate(edges) for columns in edges[: i + 1]]
    numbered = [(number, *tile) for number, tile in enumerate(tiles)]
    count = min(PARTS, len(numbered))
    ends = [len(numbered) * part // count for part in range(count + 1)]
    return [numbered[first:last] for first, last in pairwise(ends)]
