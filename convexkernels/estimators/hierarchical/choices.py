"""What hierarchical estimators have chosen between, and by which risks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.criteria.comparison import Selection
from convexkernels.solution import Solution

# Values of lam, relative to that of a search, for which risks are told.
LAM_RATIOS = 4.0 ** np.arange(-5.0, 6.0)


@dataclass(frozen=True, eq=False)
class ArchitectureChoice(Selection):
    """How architectures compare.

    Attributes
    ----------
    candidates : tuple
    risks : ndarray of shape (n_candidates, n_folds)
        Risk on each fold of the function that has not seen it, weights being searched without it, too; inf where an
        interrupt came first.
    best : int
        The candidate of the least mean risk.
    """

    candidates: tuple[Any, ...]
    risks: Array
    best: int

    @property
    def chosen(self) -> dict[str, Any]:
        return {"architecture": self.candidates[self.best]}

    @property
    def curve(self) -> dict[str, Any]:
        return {"architecture": list(self.candidates), "loss on rows held out": self.risks.mean(axis=1)}


@dataclass(frozen=True, eq=False)
class LamSelection(Selection):
    """Risks along lam, for the kernel that was learned.

    Where all rows were met by products with a matrix, or on landmarks, they are those that lam was chosen from. A
    search moves lam together with the weights: its risks are those around the last lam, on the rows of the certificate,
    and computed when they are first asked for. It ends after its steps, and lam need not be where they are least.

    Attributes
    ----------
    solution : Solution
        Of the search, or of the problem of all rows.
    lam : float
    """

    solution: Solution
    lam: float

    @property
    def lams(self) -> Array:
        """Values of lam, ascending."""
        known: Array | None = self.solution.trace.get("lams")
        return self.lam * LAM_RATIOS if known is None else known

    @property
    def risks(self) -> Array:
        """Weighted mean loss on rows that functions have not seen, for every lam."""
        if "risks" in self.solution.trace:
            return self.solution.trace["risks"]
        known, name = self.solution.derived, "risks along lam"
        if name not in known:
            known[name] = self.solution.problem.along_lam(self.solution.theta, self.lams)
        risks: Array = known[name]
        return risks

    @property
    def chosen(self) -> dict[str, float]:
        return {"lam": self.lam}

    @property
    def curve(self) -> dict[str, Array]:
        return {"lam": self.lams, "loss on rows held out": self.risks}
