"""Convex combinations of candidate kernels, enclosed."""

import math

import numpy as np

from convexkernels.arrays import Array
from convexkernels.families.candidates import CandidateGramSet
from convexkernels.families.stacks.base import PackedStack
from convexkernels.rigorous.compositions import BLOCK, diagonal, enclosure, is_positive, mean_entry, tiles
from convexkernels.rigorous.kernels import Pairs
from convexkernels.rigorous.measured import Measured, quadratics_above
from convexkernels.rigorous.rounding import UNDERFLOW, U, gamma, largest_eigenvalue, sum_above
from convexkernels.rigorous.stored import StoredMatrices, known_entries, largest_rate


class EnclosedCandidates:
    """The set of a :class:`Candidates` family.

    Matrices that are in memory are used as they are where the error of their entries is known; the entries of other
    kernels are computed tile by tile, with their radii, once a call.
    """

    def __init__(self, gram_set: CandidateGramSet) -> None:
        self.gram_set, self.X = gram_set, gram_set.X
        stack, count = gram_set.stack, len(gram_set.kernels)
        in_memory = isinstance(stack, PackedStack) and stack.values.dtype == np.float64
        rate = largest_rate(gram_set.kernels)
        rows = Pairs(self.X, self.X)
        known = [known_entries(kernel, rows, rate) if in_memory else None for kernel in gram_set.kernels]
        self.stored = StoredMatrices(stack, {k: entry for k, entry in enumerate(known) if entry is not None})
        self.entries = {k: enclosure(gram_set.kernels[k], self.X) for k in range(count) if known[k] is None}
        self.scales, self.relative = np.ones(count), np.zeros(count)
        if gram_set.family.normalize in ("trace", "mean", "variance"):
            factor = 1.0 if gram_set.family.normalize == "trace" else float(len(self.X))
            for k, parts in self._parts_of_traces(gram_set.family.normalize == "variance").items():
                self.scales[k], self.relative[k] = _over_sum(factor, *parts)

    def _parts_of_traces(self, varying: bool) -> dict[int, tuple[Array, Array]]:
        """Terms of the trace of every matrix, with radii; with `varying` of what is left of it by centering."""
        parts = {k: diagonal(entries, self.X) for k, entries in self.entries.items()}
        parts |= self.stored.diagonals()
        if not varying:
            return parts
        m = len(self.X)
        means = {k: mean_entry(entries, self.X) for k, entries in self.entries.items()} | self.stored.means()
        for k, (value, radius) in means.items():  # the mean entry, m times
            parts[k] = np.append(parts[k][0], -m * value), np.append(parts[k][1], m * (radius + 2.0 * U * abs(value)))
        return parts

    def measure(self, theta: Array, W: Array, V: Array) -> Measured:
        theta = self.gram_set.project(theta)
        coefficients = theta * self.scales
        sums = _Sums(self, coefficients, W, V)
        for rows, columns in tiles(len(self.X)) if self.entries else ():
            sums.add(Pairs(self.X[rows], self.X[columns]), rows, columns)
        self.stored.add(sums)
        defect = sums.defect()
        values, radius = sums.values + defect * W, sums.radius + gamma(3) * defect * np.abs(W)
        radius += UNDERFLOW * (1.0 + np.abs(W).sum())  # of every entry
        total = sum_above(theta)  # the kernel of the family is this one over the sum of theta, the function the same
        support = sums.forms * self.scales
        sums.spread += UNDERFLOW * (1.0 + np.abs(V).sum()) ** 2
        spread = (sums.spread * (1.0 + self.relative) + np.abs(sums.forms) * self.relative) * self.scales
        above = support + spread + 2.0 * U * np.abs(support) + UNDERFLOW
        best = int(np.argmax(above))
        return Measured(
            theta=theta,
            values=values,
            radius=radius,
            norms=quadratics_above(W, values, radius) * max(total, 1.0) * (1.0 + 4.0 * U),
            defect=defect * (1.0 + 2.0 * abs(total - 1.0)),
            support=max(0.0, float(above[best])),
            charged=float(spread[best]),
        )


class _Sums:
    """What is added up over kernels and tiles: values at the coefficients, quadratic forms of every kernel, radii."""

    def __init__(self, family: EnclosedCandidates, coefficients: Array, W: Array, V: Array) -> None:
        m, count = len(family.X), len(coefficients)
        self.family, self.coefficients, self.W, self.V = family, coefficients, W, V
        self.in_support = np.asarray(V.any(axis=0))
        self.values, self.radius = np.zeros(W.shape), np.zeros(W.shape)
        self.forms, self.spread = np.zeros(count), np.zeros(count)
        self.active = int(np.count_nonzero(coefficients))
        kernels = family.gram_set.kernels
        self.doubtful = {k for k in np.flatnonzero(coefficients).tolist() if not is_positive(kernels[k])}
        self.roundings = gamma(2 * BLOCK + len(W) + (m // BLOCK + 2) ** 2 + 16)
        self.unproven: Array | None = np.zeros((m, m)) if self.doubtful else None
        self.errors = np.zeros((m, m)) if self.doubtful else np.zeros(0)

    def add(self, pairs: Pairs, rows: slice, columns: slice) -> None:
        """Take note of a tile."""
        K, S = np.zeros((len(pairs.X), len(pairs.Y))), np.zeros((len(pairs.X), len(pairs.Y)))
        for k, entries in self.family.entries.items():
            c = float(self.coefficients[k])
            if c == 0.0 and not (self.in_support[rows].any() and self.in_support[columns].any()):
                continue
            value, radius = entries(pairs, rows, columns)
            own = self.roundings * np.abs(value)
            own += radius
            self._form(k, value, own, rows, columns)
            if c != 0.0:
                own += (float(self.family.relative[k]) + gamma(self.active + 4)) * np.abs(value)
                K += c * value
                S += c * own
                if self.unproven is not None and k in self.doubtful:
                    self.unproven[rows, columns] += c * value
                    self.errors[rows, columns] += c * own
        self.values[:, rows] += self.W[:, columns] @ K.T
        self.radius[:, rows] += np.abs(self.W[:, columns]) @ S.T
        if rows != columns:
            self.values[:, columns] += self.W[:, rows] @ K
            self.radius[:, columns] += np.abs(self.W[:, rows]) @ S

    def _form(self, k: int, value: Array, own: Array, rows: slice, columns: slice) -> None:
        factor = 1.0 if rows == columns else 2.0
        left, right = self.V[:, rows], self.V[:, columns]
        self.forms[k] += factor * float(np.vdot(left @ value, right))
        self.spread[k] += factor * float(np.vdot(np.abs(left) @ own, np.abs(right))) + UNDERFLOW

    def defect(self) -> float:
        """What, added to the diagonal, makes the matrix of the kernels without a theorem positive semidefinite."""
        if self.unproven is None:
            return 0.0
        N, R = (np.tril(A) + np.tril(A, -1).T for A in (self.unproven, self.errors))
        return max(0.0, largest_eigenvalue(-N, R))


def _over_sum(factor: float, values: Array, radii: Array) -> tuple[float, float]:
    """``factor`` over the sum of enclosed numbers, and how far it may be from the exact one, relatively."""
    wide = 1.001 * float(radii.sum())  # numbers >= 0, in any order
    if not np.isfinite(values).all() or not np.isfinite(wide):
        return 1.0, np.inf
    total = math.fsum(values.tolist())
    relative = wide / total if total > 0.0 else np.inf
    return (factor / total, 2.0 * relative + gamma(4)) if relative < 0.5 else (1.0, np.inf)
