"""All outputs of a problem as one box-constrained program, in units that suit an interior-point method."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index, Mask
from convexkernels.cones import Cone


@dataclass(frozen=True, eq=False)
class Program:
    """All outputs as one program in units in which the box is about [0, 1] and the linear term about 1.

    Coefficients that may not be 0 only are stacked over the outputs: `output` and `row` say whose they are.
    ``w = sum of sign * x`` over the one-sided variables x of a row (`point`), which lie in ``[0, cap]``; rows without
    bounds have none, and rows whose `lin` and `diagonal` are those of a parabola, which c itself keeps between `lo`
    and `hi`.
    """

    output: Index
    row: Index
    free: Mask
    lin: Array
    diagonal: Array
    point: Index
    sign: Array
    cost: Array
    cap: Array
    lo: Array
    hi: Array
    size: float
    gain: float
    intercept: bool
    n_outputs: int
    bent: bool

    def unstack(self, values: Array, m: int) -> Array:
        """One row per output, shape (n_outputs, m), zeros elsewhere."""
        full = np.zeros((self.n_outputs, m))
        full[self.output, self.row] = values
        return full

    @property
    def unit(self) -> float:
        """What K is multiplied by in the units of the program."""
        return self.size / self.gain

    def sums(self, values: Array) -> Array:
        """Sum over the rows of every output."""
        return np.bincount(self.output, values, minlength=self.n_outputs).astype(np.float64, copy=False)


def collect(problem: Any, K: Array) -> Program:
    """Collect the box duals of all outputs, in units that suit a matrix like K."""
    duals = [problem.loss.parabola(np.zeros_like(y), y, problem.weights) for y in problem.Y]
    bent = problem.loss.box_dual(problem.Y[0], problem.weights) is None
    lin, eps, lo, hi = (np.concatenate([getattr(d, name) for d in duals]) for name in ("lin", "eps", "lo", "hi"))
    diagonal = np.concatenate([np.zeros_like(d.lin) if d.diagonal is None else d.diagonal for d in duals])
    used = _movable(lo, hi, problem)
    lin, eps, lo, hi, diagonal = lin[used], eps[used], lo[used], hi[used], diagonal[used]
    free = np.isinf(hi) | bent
    is_open = bool(np.isinf(hi).any())
    gain = (float(np.abs(lin).max(initial=0.0)) or float(eps.max(initial=0.0)) or 1.0) if is_open or not bent else 1.0
    typical = float(np.diagonal(K).mean()) + float(diagonal.mean())
    size = gain / typical if is_open else max(float(hi.max()), float(-lo.min()))
    up, down = np.flatnonzero((hi > 0) & ~free), np.flatnonzero((lo < 0) & ~free)
    point = np.concatenate([up, down])
    sign = np.concatenate([np.ones(up.size), -np.ones(down.size)])
    return Program(
        output=used // problem.m,
        row=used % problem.m,
        free=free,
        lin=lin / gain,
        diagonal=diagonal * (size / gain),
        point=point,
        sign=sign,
        cost=(eps[point] - sign * lin[point]) / gain,
        cap=np.concatenate([hi[up], -lo[down]]) / size,
        lo=lo / size,
        hi=hi / size,
        size=size,
        gain=gain,
        intercept=problem.loss.intercept,
        n_outputs=len(problem.Y),
        bent=bent,
    )


def at_point(problem: Any, program: Program, w: Array) -> Program:
    """The program with parabolas that touch c at w, where c is no parabola itself."""
    if not program.bent:
        return program
    W = program.unstack(program.size * w, problem.m)
    duals = [problem.loss.parabola(u, y, problem.weights) for u, y in zip(W, problem.Y, strict=True)]
    lin, diagonal = (np.array([getattr(d, name) for d in duals]) for name in ("lin", "diagonal"))
    at = (program.output, program.row)
    return replace(program, lin=lin[at] / program.gain, diagonal=diagonal[at] * (program.size / program.gain))


def _movable(lo: Array, hi: Array, problem: Any) -> Index:
    """Coefficients that may not be 0 only; where they sum to 0, those of outputs whose box has both signs."""
    up, down = (hi > 0).reshape(-1, problem.m), (lo < 0).reshape(-1, problem.m)
    inside = up | down
    both = up.any(axis=1) & down.any(axis=1)
    if problem.loss.intercept and both.any():
        inside = inside & np.reshape(both, (-1, 1))
    return np.flatnonzero(inside)


def adjoint(problem: Any, program: Program, cone: Cone, w: Array) -> Array:
    """``A*(w w')``, summed over the outputs, in the coordinates of the cone."""
    return cone.pull(program.unit * problem.gram_set.adjoint(program.unstack(w, problem.m)))


def derivative(problem: Any, program: Program, cone: Cone, w: Array) -> Array:
    """T with ``<T_i, dP> = (K(dP) w)_i`` for every coefficient i."""
    W = program.unstack(w, problem.m)
    parts = [problem.gram_set.derivative(W[k], program.row[program.output == k]) for k in range(program.n_outputs)]
    return cone.pull(program.unit * np.concatenate(parts))


def values(program: Program, K: Array, w: Array) -> Array:
    """``K w`` of every output at its rows, in the units of the program."""
    f = np.empty_like(w)
    for k in range(program.n_outputs):
        mine = program.output == k
        rows = program.row[mine]
        f[mine] = program.unit * (K[np.ix_(rows, rows)] @ w[mine])
    return f
