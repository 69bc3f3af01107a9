"""Adam on blocks of parameters; for numpy's arrays in one pass over memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.compiled import EXACT_FAST, VECTOR, VECTOR32, compiled
from convexkernels.threads import in_parts

# Entries that are worth a part of their own.
BLOCK = 8192


class Adam:
    """The moments of one block of parameters: an array of numpy or a tensor, with gradients of the same kind.

    Parameters
    ----------
    like : array
        The block.
    common : bool
        One second moment for the whole block instead of one per entry. A step is then a multiple of the averaged
        gradient, so that a proximal step after it with the same multiple has the minimizers of the penalized
        objective as fixed points. With one per entry it would have others.
    decay, decay_of_squares : float
        Memory of the gradient and of its squared entries.
    tiny : float
        Size below which an entry of the gradient counts as small.
    """

    def __init__(
        self,
        like: Any,
        *,
        common: bool = False,
        decay: float = 0.9,
        decay_of_squares: float = 0.999,
        tiny: float = 1e-8,
    ) -> None:
        self.common, self.decay, self.decay_of_squares, self.tiny = common, decay, decay_of_squares, tiny
        self.n_steps = 0
        self.mean = 0.0 * like
        self.square: Any = 0.0 if common else 0.0 * like

    def step(self, block: Any, gradient: Any, rate: Any) -> float:
        """Move `block` in place; return the multiple of the averaged gradient it was moved by (0 unless common).

        The `rate` is a number or, unless common, like the block up to broadcasting.
        """
        if not isinstance(rate, float):
            moves = 0.0 * block
            self.step(moves, gradient, 1.0)
            block += rate * moves
            return 0.0
        self.n_steps += 1
        average = rate / (1.0 - self.decay**self.n_steps)  # `mean` begins at 0
        correction = 1.0 / (1.0 - self.decay_of_squares**self.n_steps)
        if isinstance(block, np.ndarray) and not self.common:
            # Plain numbers of the block's own type: a float64 among them would make the loop twice as slow.
            parts = [average, correction, self.decay, self.decay_of_squares, self.tiny, 1.0]
            numbers = np.array(parts, dtype=block.dtype)
            gradient = np.ascontiguousarray(gradient).reshape(-1)
            flat = (block.reshape(-1), self.mean.reshape(-1), self.square.reshape(-1), gradient, numbers)
            in_parts(_fused, block.size, *flat, least=BLOCK)
            return 0.0
        self.mean *= self.decay
        self.mean += (1.0 - self.decay) * gradient
        squares = gradient * gradient
        if self.common:
            squares = float(squares.sum()) / max(1, int(np.prod(gradient.shape)))
        self.square = self.decay_of_squares * self.square + (1.0 - self.decay_of_squares) * squares
        divisor = (self.square * correction) ** 0.5 + self.tiny
        block -= (average / divisor) * self.mean
        return float(rate / divisor) if self.common else 0.0


@compiled(*(f"(i8,i8,{','.join([v] * 5)})" for v in (VECTOR, VECTOR32)), fastmath=EXACT_FAST)
def _fused(
    first: int,
    last: int,
    block: NDArray[Any],
    mean: NDArray[Any],
    square: NDArray[Any],
    gradient: NDArray[Any],
    numbers: NDArray[Any],
) -> None:
    rate, correction, decay, decay_of_squares, tiny, one = numbers
    new, new_of_squares = one - decay, one - decay_of_squares
    for i in range(first, last):
        g = gradient[i]
        mean[i] = decay * mean[i] + new * g
        square[i] = decay_of_squares * square[i] + new_of_squares * g * g
        block[i] -= rate * mean[i] / (np.sqrt(square[i] * correction) + tiny)
