"""The family of tessellated kernels (TK)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases.monomials import monomial_basis
from convexkernels.bases.tessellation.adjoint import adjoint, derivative, pullback
from convexkernels.bases.tessellation.box import margin_slope
from convexkernels.bases.tessellation.gram import BoxPoints, Tessellation, split_tasks
from convexkernels.families.base import Family
from convexkernels.families.box import BoxRule, UnitBox
from convexkernels.families.landmarks import LandmarkGramSet
from convexkernels.families.spectraplex import SpectraplexGramSet, check_spectraplex_memory
from convexkernels.families.stacks.factored import check_landmarks, landmark_rows
from convexkernels.kernels.tessellated import TessellatedKernel
from convexkernels.validation import check_memory, check_points, check_range, check_scale, check_whole_number

# Entries of the derivative of K w in P that are worth forming (about 160 MB).
LARGEST_DERIVATIVE = 20_000_000

_MADE_AGAIN = ("points", "volumes")


class Tessellated(Family):
    """All tessellated kernels of a degree on a box: ``{k_P : P >= 0, trace P <= trace}``.

    Parameters
    ----------
    degree : int, >= 0
        Bound on the total degree of the monomials ``z^gamma x^delta``. Already degree 0 is universal.
    z_degree : int, >= 0, optional
        Bound on the degree in z; `degree` when None. With 0 a single integral remains and P has
        ``2 binom(n + degree, degree)`` rows: the choice for many rows or many features.
    box : BoxRule
        Integration domain; the training points must lie in it. ``UnitBox(margin)`` for features in [0, 1].
    trace : float, > 0
        Bound tau on the trace of P; scaling it by s is scaling C by s.
    landmarks : int or array of shape (n_landmarks, n_features), optional
        Kernels are replaced by what landmarks see of them (a number is drawn among the rows), so that memory and time
        grow as the number of rows; certificates are those of the family that this makes.
    tasks : int, >= 1, optional
        Several tasks learn together: the last column of X is the task of a row, 0, ..., tasks - 1, and P is one
        matrix over pairs of a task and a monomial, ``k((x, s), (y, t)) = integral of N(z, x)' P_st N(z, y) dz``. How
        much tasks share is learned with the rest (:meth:`TessellatedKernel.task_similarity`): diagonal blocks alone
        are separate kernels, ``P_st = B_st P`` is a matrix-valued kernel. Targets of all tasks are in y.

    Notes
    -----
    [CP20 (10), (24)]; see :class:`TessellatedKernel` for the corrections. With tasks N has every monomial of
    each task, so that nothing changes but the size of P, which is tasks times as many rows; terms u(x) + v(y) stay in
    Gram matrices, because only what is constant in all tasks together could be left out.
    """

    def __init__(
        self,
        degree: int = 1,
        z_degree: int | None = None,
        box: BoxRule | None = None,
        trace: float = 1.0,
        landmarks: Any = None,
        tasks: int | None = None,
    ) -> None:
        self.degree = check_whole_number("degree", degree, low=0)
        self.z_degree = None if z_degree is None else check_whole_number("z_degree", z_degree, low=0)
        self.box = UnitBox() if box is None else box
        self.trace = check_scale("trace", trace, remedy="Scaling it by s is scaling C by s.")
        self.tasks = None if tasks is None else check_whole_number("tasks", tasks, low=1)
        self.landmarks = check_landmarks(landmarks)

    def with_margin(self, margin: float) -> Tessellated:
        """The same family on another box ``[-margin, 1 + margin]^n``."""
        return Tessellated(self.degree, self.z_degree, UnitBox(margin), self.trace, self.landmarks, self.tasks)

    def __repr__(self) -> str:
        seen = len(self.landmarks) if isinstance(self.landmarks, np.ndarray) else self.landmarks
        given = "" if seen is None else f", landmarks={seen}"
        given += "" if self.tasks is None else f", tasks={self.tasks}"
        settings = f"degree={self.degree}, z_degree={self.z_degree}, box={self.box!r}, trace={self.trace:g}{given}"
        return f"Tessellated({settings})"

    def on(
        self, X: Any, *, modulo_constants: bool = False, memory_limit: float | None = None, dtype: Any = np.float64
    ) -> TessellatedGramSet | LandmarkGramSet:
        X = check_points(X)
        features = X if self.tasks is None else split_tasks(X, self.tasks)[0]
        lower, upper = self.box.containing(features)
        basis = monomial_basis(len(lower), self.degree, self.z_degree, self.tasks)
        corner = max(1.0, float(np.abs(lower).max()), float(np.abs(upper).max()))
        check_range(
            f"{self!r} on the box [{lower.min():g}, {upper.max():g}]^{len(lower)}",
            np.log(self.trace) + np.log(upper - lower).sum() + 2.0 * self.degree * np.log(corner),
            dtype,
            remedy="scale the features to [0, 1], lower the degree or the trace, or use dtype='float64'.",
        )
        tessellation, modulo_constants = Tessellation(basis, lower, upper), modulo_constants and self.tasks is None
        if self.landmarks is not None:
            landmarks = landmark_rows(X, self.landmarks)
            check_memory(
                8.0 * (4 * len(X) * len(landmarks) + 10 * len(landmarks) ** 2 + 10 * (2 * basis.q) ** 2),
                memory_limit,
                what=f"{len(landmarks)} landmarks of {len(X)} rows",
                remedy="Use fewer landmarks, a lower degree or a larger memory_limit.",
            )
            seen = TessellatedGramSet(self, tessellation, landmarks, modulo_constants, np.float64)
            return LandmarkGramSet(seen, landmarks, X, modulo_constants)
        # The Gram matrix, the pair volumes, and the rows a new Gram matrix is built from.
        check_spectraplex_memory(X.shape[0], 2 * basis.q, 2.2, dtype, memory_limit, "tessellated")
        return TessellatedGramSet(self, tessellation, X, modulo_constants, dtype)


class TessellatedGramSet(SpectraplexGramSet):
    """Gram matrices of the tessellated kernels on m points."""

    def __init__(
        self, family: Tessellated, tessellation: Tessellation, X: Array, modulo_constants: bool, dtype: Any
    ) -> None:
        super().__init__(2 * tessellation.basis.q, family.trace)
        self.family, self.tessellation, self.X, self.m = family, tessellation, X, X.shape[0]
        self.modulo_constants, self.dtype = modulo_constants, dtype

    @cached_property
    def points(self) -> BoxPoints:
        """The points with their monomials and integrals."""
        return self.tessellation.points(self.X)

    @cached_property
    def volumes(self) -> Array:
        """Volumes of the boxes that two points reach together, shape (m, m)."""
        out = np.empty((self.m, self.m), dtype=self.dtype)
        return self.tessellation.volumes(self.points, self.points, out)

    def release(self) -> None:
        for name in _MADE_AGAIN:
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        # What grows as m^2, and what can be had again from X, is not written out with a model.
        return {name: value for name, value in self.__dict__.items() if name not in _MADE_AGAIN}

    def restrict(self, index: Index) -> TessellatedGramSet:
        return TessellatedGramSet(self.family, self.tessellation, self.X[index], self.modulo_constants, self.dtype)

    def gram(self, theta: Array, out: Array | None = None) -> Array:
        if out is None:
            out = np.empty((self.m, self.m), dtype=self.dtype)
        return self.tessellation.gram(
            theta, self.points, self.points, modulo_constants=self.modulo_constants, volumes=self.volumes, out=out
        )

    def adjoint(self, W: Array) -> Array:
        D = np.zeros((self.size, self.size))
        for w in W:
            D += adjoint(
                self.tessellation, w, self.points, modulo_constants=self.modulo_constants, volumes=self.volumes
            )
        return D

    def pullback(self, M: Array) -> Array:
        return pullback(self.tessellation, M, self.points, modulo_constants=self.modulo_constants, volumes=self.volumes)

    def derivative(self, w: Array, rows: Index) -> Array | None:
        if rows.size * self.size**2 > LARGEST_DERIVATIVE:
            return None
        return derivative(self.tessellation, w, self.points, rows, modulo_constants=self.modulo_constants)

    def margin_slope(self, theta: Array, M: Array) -> float:
        """Derivative of ``<M, K(theta)>`` as all sides of the box move outwards."""
        return margin_slope(self.tessellation, theta, M, self.points, modulo_constants=self.modulo_constants)

    def kernel(self, theta: Array) -> TessellatedKernel:
        t = self.tessellation
        family = self.family
        return TessellatedKernel(theta.copy(), t.lower, t.upper, family.degree, family.z_degree, tasks=family.tasks)

    def cross(self, theta: Array, Z: Any) -> Array:
        Z = check_points(Z, n_features=self.tessellation.n_columns)
        return self.tessellation.gram(
            theta, self.tessellation.points(Z), self.points, modulo_constants=self.modulo_constants
        )

    def with_constants(self, theta: Array, w: Array) -> float:
        return -float(self.tessellation.constants(theta, self.points) @ w) if self.modulo_constants else 0.0
