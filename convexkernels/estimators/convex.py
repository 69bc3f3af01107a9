"""What the estimators of convex kernel learning share: a family, a loss, and a certified optimum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from convexkernels.estimators.base import KernelEstimator
from convexkernels.estimators.table import TrainingTable
from convexkernels.estimators.targets import Targets
from convexkernels.families.base import Family
from convexkernels.losses.base import Loss
from convexkernels.problems.kernel_learning import KernelLearning
from convexkernels.validation import check_number

__all__ = ["ConvexEstimator"]


@dataclass(eq=False, repr=False, kw_only=True)
class ConvexEstimator(KernelEstimator):
    """Estimators that name a convex family of kernels and a loss, and solve to a duality gap."""

    intercept: bool = True
    tol: float = 1e-4
    solver: Any = "auto"
    memory_limit: float | None = None

    @abstractmethod
    def _family(self, n_features: int) -> Family:
        """The family, from the parameters, for a table of `n_features` used features."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss, from the parameters."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("tol", self.tol, low=0.0, open_low=True)
        if self.memory_limit is not None:
            check_number("memory_limit", self.memory_limit, low=0.0, remedy="None means the free memory.")
        self._loss()

    def _problem(self, table: TrainingTable, targets: Targets) -> KernelLearning:
        # With weights all alike, the problem is the plain one, and says so.
        weights = None if (table.weights == 1.0).all() else table.weights
        family = self._family(table.X.shape[1])
        y = targets.expanded(table.y)
        return KernelLearning(family, self._loss(), table.X, y, sample_weight=weights, memory_limit=self.memory_limit)

    def _search(self) -> dict[str, Any]:
        return {"solver": self.solver, "tol": self.tol}

    def _finish(self, rows: TrainingTable, table: TrainingTable) -> None:
        self.support_ = table.rows[self.solution_.function.support]
        self.support_vectors_ = rows.points_of(self.support_)
        self.solution_.problem.gram_set.release()  # a fitted estimator lives longer than its m x m matrices should
