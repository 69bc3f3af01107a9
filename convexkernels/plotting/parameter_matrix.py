"""The matrix that parameterizes a learned kernel."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array
from convexkernels.bases.monomials import MonomialBasis, count_monomials, monomial_basis
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.kernels.tessellated import GeneralizedPolynomialKernel, TessellatedKernel
from convexkernels.plotting.canvas import Display, numbered, signed_scale

# Rows with a label of their own; with more, labels are thinned out.
MOST_LABELS = 40


@dataclass(eq=False, repr=False)
class ParameterMatrixDisplay(Display):
    """The matrix P of a tessellated or generalized polynomial kernel, its rows labeled by their monomials.

    For a tessellated kernel P has four blocks: the monomials ``Z(z, x)`` where ``z >= x``, and where not.

    Parameters
    ----------
    P : ndarray of shape (size, size)
    labels : list of str
        One per row.
    blocks : list of str
        Names of the equal parts the rows fall into.
    """

    P: Array
    labels: list[str]
    blocks: list[str]

    @classmethod
    def from_kernel(cls, kernel: Kernel, *, names: list[str] | None = None) -> Self:
        """Take the matrix of a kernel.

        Parameters
        ----------
        kernel : TessellatedKernel or GeneralizedPolynomialKernel
        names : list of str, optional
            Names of the features of the kernel.
        """
        if isinstance(kernel, TessellatedKernel):
            n = len(np.atleast_1d(kernel.lower))
            basis = monomial_basis(n, kernel.degree, kernel.z_degree, kernel.tasks)
            return cls(np.asarray(kernel.P), 2 * _monomial_labels(basis, names), ["z ≥ x", "otherwise"])
        if isinstance(kernel, GeneralizedPolynomialKernel):
            P = np.asarray(kernel.P)
            if names is None:
                names = _default_names(P.shape[0], kernel.degree)
            if kernel.center is not None and kernel.scale is not None:
                places = zip(names, kernel.center, kernel.scale, strict=True)
                names = [f"(({name} - {center:.3g})/{scale:.3g})" for name, center, scale in places]
            return cls(P, _monomial_labels(monomial_basis(len(names), kernel.degree, 0), names), [""])
        raise InvalidInputError(
            f"kernel must be a TessellatedKernel or a GeneralizedPolynomialKernel, got {type(kernel).__name__}."
        )

    @classmethod
    def from_solution(cls, solution: Any, *, names: list[str] | None = None) -> Self:
        """Take the matrix of the learned kernel."""
        return cls.from_kernel(solution.kernel, names=names)

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the matrix of a fitted estimator; monomials carry the names of the features it uses."""
        names = [estimator.feature_labels_[k] for k in estimator.scaling_.columns]
        return cls.from_solution(estimator.solution_, names=names)

    def plot(self, ax: Any = None) -> Self:
        """Draw P with a color scale that is symmetric around 0."""
        size = self.P.shape[0]
        side = float(np.clip(2.6 + 0.24 * size, 4.2, 9.0))
        ax = self._draws_on(ax, size=(side + 1.0, side))
        image = ax.imshow(self.P, interpolation="nearest", **signed_scale(self.P))
        self.figure_.colorbar(image, ax=ax, label="entry of P", shrink=0.8)
        shown = np.arange(0, size, int(np.ceil(size / MOST_LABELS)))
        labels, small = [self.labels[k] for k in shown], "small" if size <= 24 else "x-small"
        ax.set_xticks(shown, labels, rotation=90, fontsize=small)
        ax.set_yticks(shown, labels, fontsize=small)
        self._mark_blocks(size)
        values = np.linalg.eigvalsh(self.P)[::-1]
        rank = int((values > 1e-6 * max(values[0], 1e-300)).sum())
        shares = ", ".join(f"{max(v, 0.0) / max(values.sum(), 1e-300):.0%}" for v in values[: min(rank, 3)])
        ax.set_title(f"trace {values.sum():.3g}, rank {rank}; leading eigenvalue{'s' if rank > 1 else ''} {shares}")
        return self

    def _mark_blocks(self, size: int) -> None:
        part = size / len(self.blocks)
        for k, name in enumerate(self.blocks):
            if k:
                self.ax_.axhline(k * part - 0.5, color="black", linewidth=0.8)
                self.ax_.axvline(k * part - 0.5, color="black", linewidth=0.8)
            if name:
                middle = (k + 0.5) / len(self.blocks)
                options = {"textcoords": "axes fraction", "ha": "center", "va": "center", "fontweight": "bold"}
                self.ax_.annotate(name, (0, 0), (middle, -0.2), **options)
                self.ax_.annotate(name, (0, 0), (-0.2, 1.0 - middle), rotation=90, **options)


def _monomial_labels(basis: MonomialBasis, names: list[str] | None) -> list[str]:
    names = numbered(basis.n) if names is None else list(names)
    if len(names) != basis.n:
        raise InvalidInputError(f"names has {len(names)} entries, but the kernel has {basis.n} features.")
    labels = []
    for k, (gamma, delta) in enumerate(zip(basis.gamma, basis.delta, strict=True)):
        parts = [_power(name, int(e)) for name, e in zip(names, delta, strict=True) if e]
        parts += [_power(f"z[{name}]", int(e)) for name, e in zip(names, gamma, strict=True) if e]
        task = "" if basis.tasks is None else f", task {k % basis.tasks}"
        labels.append((" ".join(parts) or "1") + task)
    return labels


def _power(name: str, exponent: int) -> str:
    return name + ("" if exponent == 1 else "⁰¹²³⁴⁵⁶⁷⁸⁹"[exponent] if exponent < 10 else f"^{exponent}")


def _default_names(q: int, degree: int) -> list[str]:
    """Names of the features of a basis of q monomials."""
    for n in range(1, q + 1):
        if count_monomials(n, degree, 0) == q:
            return numbered(n)
    raise InvalidInputError(f"P has {q} rows, which is no number of monomials of degree {degree}.")
