"""What the families with a matrix parameter share: Theta = {P >= 0, trace P <= tau}."""

from typing import Any

import numpy as np

from convexkernels.arrays import Array
from convexkernels.cones import SemidefiniteCone
from convexkernels.families.base import FamilyStatement, GramSet
from convexkernels.linalg import leading_eigenpair, project_spectraplex
from convexkernels.validation import check_memory


class SpectraplexGramSet(GramSet):
    """Gram matrices linear in a PSD matrix of bounded trace; ``sigma(D) = trace * lambda_max(D)``."""

    def __init__(self, size: int, trace: float) -> None:
        self.size = size
        self.trace = trace

    def initial(self) -> Array:
        return np.eye(self.size) * (self.trace / self.size)

    def project(self, theta: Array) -> Array:
        return project_spectraplex(theta, self.trace)

    def cone(self) -> SemidefiniteCone:
        return SemidefiniteCone(self.size)

    def support(self, D: Array) -> tuple[float, Array]:
        value, vector = leading_eigenpair(D)
        if value <= 0.0:
            return 0.0, np.zeros_like(D)
        return self.trace * value, self.trace * np.outer(vector, vector)

    def statement(self) -> FamilyStatement:
        import cvxpy as cp

        P = cp.Variable((self.size, self.size), PSD=True, name="P")
        columns = self._gram_columns()
        gram = cp.reshape(columns @ cp.vec(P, order="F"), (self.m, self.m), order="F")
        return FamilyStatement(P, [cp.trace(P) <= self.trace], gram)

    def _gram_columns(self) -> Array:
        """The linear map vec(P) -> vec(K) as a matrix, shape (m^2, size^2); meant for small problems."""
        columns = np.empty((self.m * self.m, self.size * self.size))
        unit = np.zeros((self.size, self.size))
        for i in range(self.size):
            for j in range(i + 1):
                unit[i, j] = unit[j, i] = 0.5 if i != j else 1.0
                image = self.gram(unit)
                unit[i, j] = unit[j, i] = 0.0
                columns[:, i + j * self.size] = columns[:, j + i * self.size] = image.ravel(order="F")
        return columns


def check_spectraplex_memory(m: int, size: int, matrices: float, dtype: Any, limit: float | None, what: str) -> None:
    """Refuse `matrices` Gram matrices of m points, with the work space of a (size, size) parameter, beyond a limit."""
    check_memory(
        matrices * float(m) ** 2 * np.dtype(dtype).itemsize + 10 * 8.0 * float(size) ** 2,
        limit,
        what=f"learning a {what} kernel on {m} rows",
        remedy="Use fewer rows, a larger memory_limit, or dtype='float32' of KernelLearning.",
    )
