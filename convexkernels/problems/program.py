"""A kernel learning problem stated in CVXPY, as the papers print it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from convexkernels.arrays import Array

if TYPE_CHECKING:
    from convexkernels.families.base import FamilyStatement
    from convexkernels.losses.base import LossStatement

Reader = Callable[[], Array | None]


@dataclass(eq=False)
class Program:
    """A CVXPY problem, its variables under the papers' names, and how to read its answer.

    Attributes
    ----------
    objective : cvxpy.Minimize
        Its optimum is J*, the value the certificate bounds (``t / 2`` in the papers' notation).
    constraints : list of cvxpy constraints
        Append your own; `problem` is built from the list as it is when asked for.
    variables : dict of str to cvxpy.Variable
    theta : cvxpy.Variable
        Parameter of the kernel: P for tessellated kernels, the weights for a list of candidates.
    n_own : int
        Number of constraints that state the problem; what comes after was added by the user.
    multipliers : list of callables
        One per output: reads its coefficients w off the multipliers of a solved program, None without them.
    """

    objective: Any
    constraints: list[Any]
    variables: dict[str, Any]
    theta: Any
    n_own: int
    multipliers: list[Reader]

    _stated: tuple[Any, list[Any], Any] | None = field(default=None, init=False, repr=False)

    @property
    def problem(self) -> Any:
        """The ``cvxpy.Problem``: the same object until objective or constraints are changed."""
        import cvxpy as cp

        known = self._stated
        if known is None or known[0] is not self.objective or known[1] != [id(part) for part in self.constraints]:
            parts = [id(part) for part in self.constraints]
            self._stated = known = (self.objective, parts, cp.Problem(self.objective, list(self.constraints)))
        return known[2]

    def coefficients(self) -> list[Array] | None:
        """Coefficients w of every output, read from the multipliers after solving; None where a solver gave none."""
        found = [read() for read in self.multipliers]
        return None if any(w is None for w in found) else found  # type: ignore[return-value]

    @property
    def is_extended(self) -> bool:
        """Whether constraints were added to the published statement."""
        return len(self.constraints) > self.n_own


def state(problem: Any) -> Program:
    """State `problem`: ``min sum_k t_k / 2`` with one linear matrix inequality, or one set of cones, per output.

    For the hinge loss and a matrix parameter this is [CP20 (24)] word for word, for weights of any sign [CP20 (5)]:
    ``[[G(P), v], [v', t - 2C sum(delta)]] >= 0``, ``v = 1 + nu - delta + gamma y``, ``G = diag(y) K(P) diag(y)``.

    Where the weights of a family are >= 0 and ``K = sum_k mu_k L_k L_k'``, the same minimum is that of
    ``sum_k |a_k|^2 / mu_k + 2C sum(delta) <= t`` over ``sum_k L_k a_k = y v``: one rotated second-order cone per
    kernel.
    """
    import cvxpy as cp

    family = problem.full_gram_set.statement()
    variables: dict[str, Any] = {_letter(family.theta): family.theta}
    constraints = list(family.constraints)
    multipliers: list[Reader] = []
    total: Any = 0.0
    for k, y in enumerate(problem.Y + problem.center[:, None]):
        suffix = "" if len(problem.Y) == 1 else f"_{k}"
        loss = problem.loss.statement(y, problem.weights)
        t = cp.Variable(name="t" + suffix)
        variables["t" + suffix] = t
        variables.update({name + suffix: variable for name, variable in loss.variables.items()})
        constraints += loss.constraints
        if family.factors is None:
            own, read = _matrix_inequality(family, loss, t)
        else:
            own, read = _cones(family, loss, t, suffix, variables)
        constraints += own
        multipliers.append(read)
        total = total + 0.5 * t
    objective = cp.Minimize(problem.loss.scale * total)
    return Program(objective, constraints, variables, family.theta, len(constraints), multipliers)


def _matrix_inequality(family: FamilyStatement, loss: LossStatement, t: Any) -> tuple[list[Any], Reader]:
    import cvxpy as cp

    m = family.gram.shape[0]
    signs = np.ones(m) if loss.signs is None else loss.signs
    v = cp.reshape(cp.multiply(signs, loss.u), (m, 1), order="F")
    corner = cp.reshape(t - 2.0 * loss.cost, (1, 1), order="F")
    inequality = cp.bmat([[cp.multiply(np.outer(signs, signs), family.gram), v], [v.T, corner]]) >> 0

    def read() -> Array | None:
        # The multiplier is [[., z], [z', 1/2]], up to the scale of the loss, with alpha = -2 z.
        Z = inequality.dual_value
        if Z is None or not np.isfinite(Z).all() or not Z[-1, -1] > 0.0:
            return None
        return -signs * 0.5 * (Z[:-1, -1] + Z[-1, :-1]) / Z[-1, -1]

    return [inequality], read


def _cones(
    family: FamilyStatement, loss: LossStatement, t: Any, suffix: str, variables: dict[str, Any]
) -> tuple[list[Any], Reader]:
    import cvxpy as cp

    factors = family.factors or []
    parts = [cp.Variable(L.shape[1], name=f"a{k}{suffix}") for k, L in enumerate(factors)]
    variables.update({part.name(): part for part in parts})
    norms = sum(cp.quad_over_lin(part, family.theta[k]) for k, part in enumerate(parts))
    image = sum(L @ part for L, part in zip(factors, parts, strict=True)) == loss.u
    bound = norms + 2.0 * loss.cost <= t

    def read() -> Array | None:
        # Stationarity in a_k = mu_k L_k' w: 2 (multiplier of the bound) w = -(multiplier of the image).
        force, weight = image.dual_value, bound.dual_value
        if force is None or weight is None or not np.isfinite(force).all() or not np.all(weight > 0.0):
            return None
        return -force / (2.0 * np.ravel(weight)[0])

    return [image, bound], read


def _letter(variable: Any) -> str:
    return str(variable.name())
