"""Adam on blocks of parameters, in one pass over memory on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from convexkernels.spectral.backend import Backend

__all__ = ["Adam"]

DECAY, DECAY_OF_SQUARES, TINY = 0.9, 0.999, 1e-8
BLOCK = 8192


class Adam:
    """The moments of one block of parameters.

    Parameters
    ----------
    like : array
        The block.
    backend : Backend
    common : bool
        One second moment for the whole block instead of one per entry. A step is then a multiple of the averaged
        gradient, so that a proximal step after it with the same multiple has the minimizers of the penalized
        objective as fixed points. With one per entry it would have others.
    """

    def __init__(self, like: Any, backend: Backend, *, common: bool = False) -> None:
        self.backend = backend
        self.common = common
        self.n_steps = 0
        self.mean = backend.zeros(tuple(like.shape))
        self.square: Any = 0.0 if common else backend.zeros(tuple(like.shape))

    def step(self, block: Any, gradient: Any, rate: float) -> float:
        """Move `block` in place; return the multiple of the averaged gradient it was moved by (0 unless common)."""
        self.n_steps += 1
        rate = rate / (1.0 - DECAY**self.n_steps)
        correction = 1.0 / (1.0 - DECAY_OF_SQUARES**self.n_steps)
        if self.common:
            return self._common_step(block, gradient, rate, correction)
        if self.backend.is_numpy:
            # Plain numbers of the block's own type: a float64 among them would make the loop twice as slow.
            numbers = np.array([rate, correction, DECAY, DECAY_OF_SQUARES, TINY, 1.0], dtype=block.dtype)
            gradient = np.ascontiguousarray(gradient).reshape(-1)
            _fused(block.reshape(-1), self.mean.reshape(-1), self.square.reshape(-1), gradient, numbers)
            return 0.0
        self.mean.mul_(DECAY).add_(gradient, alpha=1.0 - DECAY)
        self.square.mul_(DECAY_OF_SQUARES).addcmul_(gradient, gradient, value=1.0 - DECAY_OF_SQUARES)
        block.addcdiv_(self.mean, (self.square * correction).sqrt_().add_(TINY), value=-rate)
        return 0.0

    def _common_step(self, block: Any, gradient: Any, rate: float, correction: float) -> float:
        xp = self.backend.xp
        self.mean *= DECAY
        self.mean += (1.0 - DECAY) * gradient
        size = float(xp.sum(gradient * gradient)) / max(1, int(np.prod(gradient.shape)))
        self.square = DECAY_OF_SQUARES * self.square + (1.0 - DECAY_OF_SQUARES) * size
        multiple = rate / (float(np.sqrt(self.square * correction)) + TINY)
        block -= multiple * self.mean
        return multiple


@njit(parallel=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _fused(
    block: NDArray[Any], mean: NDArray[Any], square: NDArray[Any], gradient: NDArray[Any], numbers: NDArray[Any]
) -> None:  # pragma: no cover - compiled
    n = block.shape[0]
    rate, correction, decay, decay_of_squares, tiny, one = numbers
    new, new_of_squares = one - decay, one - decay_of_squares
    for part in prange((n + BLOCK - 1) // BLOCK):
        for i in range(part * BLOCK, min(n, (part + 1) * BLOCK)):
            g = gradient[i]
            mean[i] = decay * mean[i] + new * g
            square[i] = decay_of_squares * square[i] + new_of_squares * g * g
            block[i] -= rate * mean[i] / (np.sqrt(square[i] * correction) + tiny)
