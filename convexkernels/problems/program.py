"""A kernel learning problem stated in CVXPY, as the papers print it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from convexkernels.problems.kernel_learning import KernelLearning

__all__ = ["Program", "state"]


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
    """

    objective: Any
    constraints: list[Any]
    variables: dict[str, Any]
    theta: Any
    n_own: int

    @property
    def problem(self) -> Any:
        """The ``cvxpy.Problem``."""
        import cvxpy as cp

        return cp.Problem(self.objective, self.constraints)

    @property
    def is_extended(self) -> bool:
        """Whether constraints were added to the published statement."""
        return len(self.constraints) > self.n_own


def state(problem: KernelLearning) -> Program:
    """State `problem`: ``min sum_k t_k / 2`` with one linear matrix inequality (or cone) per machine.

    For the hinge loss and a matrix parameter this is (24) of Colbert and Peet, word for word:
    ``[[G(P), v], [v', t - 2C sum(delta)]] >= 0``, ``v = 1 + nu - delta + gamma y``, ``G = diag(y) K(P) diag(y)``.
    """
    import cvxpy as cp

    family = problem.full_gram_set.statement()
    variables: dict[str, Any] = {_letter(family.theta): family.theta}
    constraints = list(family.constraints)
    total: Any = 0.0
    for k, y in enumerate(problem.Y):
        suffix = "" if len(problem.Y) == 1 else f"_{k}"
        loss = problem.loss.statement(y, problem.weights)
        t = cp.Variable(name="t" + suffix)
        variables["t" + suffix] = t
        variables.update({name + suffix: variable for name, variable in loss.variables.items()})
        constraints += loss.constraints
        signs = np.ones(problem.m) if loss.signs is None else loss.signs
        v = cp.reshape(cp.multiply(signs, loss.u), (problem.m, 1), order="F")
        corner = cp.reshape(t - 2.0 * loss.cost, (1, 1), order="F")
        G = cp.multiply(np.outer(signs, signs), family.gram)
        constraints.append(cp.bmat([[G, v], [v.T, corner]]) >> 0)
        total = total + 0.5 * t
    objective = cp.Minimize(problem.loss.scale * total)
    return Program(objective, constraints, variables, family.theta, len(constraints))


def _letter(variable: Any) -> str:
    return str(variable.name())
