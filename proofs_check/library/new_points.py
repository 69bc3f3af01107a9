"""The same kernel in every form: of matrices, at new points, by features, and as landmarks see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convexkernels import (
    AllKernelMatrices,
    Candidates,
    GeneralizedPolynomial,
    Span,
    Tessellated,
    TessellatedKernel,
    UnitBox,
)
from convexkernels import kernels as k
from convexkernels.arrays import Array
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.families import FAMILIES, example_points
from convexkernels.families.candidate_list import combination
from convexkernels.families.curved import CURVED
from convexkernels.families.precomputed import row_numbers
from convexkernels.kernels.gaussian_process import Covariance
from convexkernels.kernels.normalized import Centered, Normalized
from proofs_check.claim import Claim
from proofs_check.library.values import matern

Generator = np.random.Generator


def measure_curved(subject: tuple[Callable[[], Any], float], rng: Generator) -> Verdict:
    """The kernel of a point of a curved family has the matrix of that point; a factor of it."""
    make, factor = subject
    X = rng.uniform(0.1, 0.9, (7, 2))
    gram_set = make().on(X)
    start = gram_set.start(rng, 0)
    z = start + 0.1 * rng.standard_normal(start.size)
    K = factor * gram_set.at(z).gram()
    return Verdict(float(np.abs(gram_set.kernel(z)(X) - K).max()), 1e-9 * float(np.abs(K).max()), 1, {"X": X, "z": z})


def measure_convex(subject: tuple[Callable[[], Any], float], rng: Generator) -> Verdict:
    """Functions by the kernel of a point are those by its matrices, at the points and at new ones.

    Where matrices leave out terms u(x) + v(y) they are so up to the constant that is said; a factor of the matrices.
    """
    make, factor = subject
    family = make()
    X, Z = (example_points(family, rng.uniform(0.1, 0.9, (count, 2))) for count in (8, 5))
    if isinstance(family, AllKernelMatrices):
        X = Z = row_numbers(8)
    w, verdicts = rng.standard_normal(8), []
    for modulo in (False,) if isinstance(family, Span) else (False, True):
        gram_set = family.on(X, modulo_constants=modulo)
        theta = gram_set.project(np.asarray(gram_set.initial()) * (1.0 + 0.3 * rng.standard_normal()))
        if theta.ndim == 2:
            G = rng.standard_normal((len(theta), 3))
            theta = gram_set.project(theta + 0.2 * G @ G.T / np.trace(G @ G.T))
        v = w - w.mean() if modulo else w
        kernel, constant = gram_set.kernel(theta), gram_set.with_constants(theta, v)
        pairs = [
            (kernel(X, X) @ v + constant, factor * gram_set.gram(theta) @ v),
            (kernel(Z, X) @ v + constant, factor * gram_set.cross(theta, Z) @ v),
        ]
        size = 1e-9 * float(np.abs(kernel(X)).max() * np.abs(v).sum())
        verdicts += [Verdict(float(np.abs(a - b).max()), size, 1, {"X": X, "w": v, "theta": theta}) for a, b in pairs]
    return Verdict.worst(verdicts)


def measure_unseen(factor: float, rng: Generator) -> Verdict:
    """What landmarks leave of a point is ``|phi(x) - sum_l u_l phi(l)|^2``, u being the best coefficients of sum one.

    Best in the space of the central kernel of the family, by a bordered system; for candidates by themselves, each
    in its own space and without a sum. `factor` multiplies u.
    """
    X = rng.uniform(0.1, 0.9, (9, 2))
    L, verdicts = X[:5] + 0.05, []
    for modulo in (False, True):
        gram_set: Any = Tessellated(1, box=UnitBox(0.5), landmarks=L).on(X, modulo_constants=modulo)
        inner = gram_set.inner
        G = rng.standard_normal((inner.size, 3))
        theta = gram_set.project(inner.initial() + 0.3 * G @ G.T / np.trace(G @ G.T))
        reference, kernel = inner.kernel(gram_set.initial()), inner.kernel(theta)
        bordered = np.ones((6, 6))
        bordered[:5, :5], bordered[5, 5] = reference(L), 0.0
        U = np.linalg.solve(bordered, np.column_stack([reference(X, L), np.ones(9)]).T)[:5].T
        found = np.concatenate([left for left, _ in gram_set.seen_by_landmarks(theta)])
        verdicts.append(_left(kernel, X, L, factor * U, found, 1e-7))
    kernels = [k.Gaussian(3.0), k.Polynomial(2, 0.7)]
    stack: Any = Candidates(kernels, "none", landmarks=L).on(X)
    for kernel, weights in zip(kernels, np.eye(2), strict=True):
        U = kernel(X, L) @ np.linalg.pinv(kernel(L), rcond=1e-9)
        found = np.concatenate([left for left, _ in stack.seen_by_landmarks(weights)])
        verdicts.append(_left(kernel, X, L, factor * U, found, 1e-7))
    return Verdict.worst(verdicts)


def _left(kernel: Any, X: Array, L: Array, U: Array, found: Array, share: float) -> Verdict:
    """Squared lengths of ``phi(x) - U phi(L)``, by the matrix of points and landmarks together."""
    E, K = np.hstack([np.eye(len(X)), -U]), kernel(np.vstack([X, L]))
    direct, size = np.einsum("ij,jk,ik->i", E, K, E), share * float(np.abs(K).max())
    return Verdict(float(np.abs(found - direct).max()), size, 1, {"X": X, "L": L, "found": found, "direct": direct})


def measure_support_above(factor: float, rng: Generator) -> Verdict:
    """Support functions of polynomials bear features that are off by a share of themselves, and none off by nothing.

    ``trace |sum_i w_i z(x_i)|^2`` for all z within that share, whatever the trace is; `factor` multiplies it.
    """
    X, w, trace = rng.uniform(0.0, 1.0, (8, 2)), rng.standard_normal((1, 8)), float(rng.uniform(0.2, 5.0))
    Z = np.array([X[:, 0] ** i * X[:, 1] ** j for i in range(3) for j in range(3 - i)])
    gram_set: Any = GeneralizedPolynomial(2, trace).on(X)
    D = gram_set.adjoint(w)
    sigma, verdicts = gram_set.support(D)[0], []
    for unit in (0.0, 1e-3):
        above = gram_set.support_above(D, sigma, w, np.zeros((1, 8)), unit)
        signs = [unit * rng.choice([-1.0, 1.0], Z.shape) for _ in range(20)]
        # The worst case for each feature: all terms move away from 0.
        signs.append(unit * np.sign(w * Z) * np.sign(Z @ w[0])[:, None])
        worst = max(trace * factor * float(((Z * (1.0 + s) @ w[0]) ** 2).sum()) for s in signs)
        verdicts.append(Verdict(max(0.0, worst - above), 1e-11 * above, 1, {"X": X, "w": w, "above": above}))
        if unit == 0.0:
            verdicts.append(Verdict(abs(above - worst), 1e-11 * above, 1, {"X": X, "w": w, "above": above}))
    return Verdict.worst(verdicts)


def measure_merged(factor: float, rng: Generator) -> Verdict:
    """Sums of centered tessellated kernels are one such kernel, and rows of ready-made matrices are centered alike.

    At new points; `factor` multiplies one of the weights, and the matrices.
    """
    X, Z, weights = rng.uniform(0.1, 0.9, (6, 1)), rng.uniform(0.1, 0.9, (4, 1)), rng.uniform(0.2, 2.0, 2)
    parts = []
    for _ in range(2):
        G = rng.standard_normal((6, 6))
        parts.append(TessellatedKernel(G @ G.T, [-0.2], [1.2], 1))
    whole, both = np.zeros((10, 10)), np.vstack([X, Z])
    for weight, kernel in zip(weights * [1.0, factor], parts, strict=True):
        whole += weight * _centered(kernel(both), 6)
    merged = combination([Centered(kernel, X) for kernel in parts], weights)
    size = 1e-10 * float(weights.sum() * max(float(np.abs(kernel(both)).max()) for kernel in parts))
    found = merged(Z, X) + 0.0
    verdicts = [Verdict(float(np.abs(found - whole[6:, :6]).max()), size, 1, {"X": X, "weights": weights})]
    matrix = k.Polynomial(2, 0.5)(both)
    gram_set: Any = Candidates(matrix[None, :6, :6], "none", center=True).on(None)
    rows = gram_set.cross(np.ones(1), matrix[None, 6:, :6])
    apart = float(np.abs(rows - factor * _centered(matrix, 6)[6:, :6]).max())
    return Verdict.worst([*verdicts, Verdict(apart, 1e-12 * float(matrix.max()), 1, {"matrix": matrix})])


def _centered(K: Array, m: int) -> Array:
    """Inner products of images minus the mean of the first m, by the matrix that takes it away."""
    E = np.eye(len(K))
    E[:, :m] -= 1.0 / m
    return np.asarray(E @ K @ E.T)


def measure_features(factor: float, rng: Generator) -> Verdict:
    """Inner products of features are the kernel: landmarks, their cosines, random cosines; and covariances.

    A covariance is the kernel times its variance, with the derivative in its logarithm; `factor` multiplies features.
    """
    X, Z = rng.uniform(0.1, 0.9, (6, 2)), rng.uniform(0.1, 0.9, (5, 2))
    nystrom = k.Nystrom(k.Polynomial(2, 0.5), Z)
    spectral = k.Spectral(rng.normal(0.0, 2.0, (2, 5)), rng.normal(0.0, 2.0, (2, 5)))
    verdicts = []
    for kernel in (
        nystrom,
        Normalized(nystrom),
        k.Rescaled(nystrom, [0.1, 0.2], [2.0, 0.5]),
        spectral,
        Normalized(spectral),
    ):
        features = kernel.feature_map()
        if features is None:
            continue
        left, right = factor * features(X), features(Z)
        apart = max(np.abs(left @ right.T - kernel(X, Z)).max(), np.abs((left**2).sum(axis=1) - kernel.diag(X)).max())
        verdicts.append(Verdict(float(apart), 1e-9 * float(kernel.diag(X).max()), 1, {"X": X, "kernel": repr(kernel)}))
    kernel, variance = k.Polynomial(2, 0.5), float(rng.uniform(0.3, 4.0))
    K, slope = Covariance(kernel, variance)(X, eval_gradient=True)
    K0 = factor * (X @ X.T + 0.5) ** 2
    derivative, error = richardson_derivative(
        lambda t: (float(np.exp(np.log(variance) + t) * K0.sum()), 1e-14 * K.sum()), 0.1
    )
    apart = max(
        np.abs(K - variance * K0).max(),
        np.abs(Covariance(kernel, variance).diag(X) - variance * np.diag(K0)).max(),
        max(0.0, abs(float(slope.sum()) - derivative) - 4.0 * error),
    )
    return Verdict.worst([*verdicts, Verdict(float(apart), 1e-12 * float(K.max()), 1, {"X": X, "variance": variance})])


def measure_far_points(factor: float, rng: Generator) -> Verdict:
    """A product of Matern kernels of many features, between points some of which are so far that factors overflow.

    ``prod_j M(t_j) / M(smoothing)`` one by one; `factor` multiplies the smoothing.
    """
    n, order, length = 60, 4.0, float(rng.uniform(0.8, 1.5))
    smoothing, center = float(rng.uniform(0.2, 0.5)), rng.standard_normal(n)
    X = center + 0.05 * rng.standard_normal((5, n))
    X[0] += 1e4
    found, direct, s = k.TensorMatern(order, length, smoothing)(X), np.zeros((5, 5)), factor * smoothing
    for i in range(5):
        for j in range(5):
            t = np.sqrt(((X[i] - X[j]) / length) ** 2 + s * s)
            direct[i, j] = np.prod([matern(order, float(v)) / matern(order, s) for v in t])
    return Verdict(float(np.abs(found - direct).max()), 1e-11, 1, {"X": X, "length": length, "smoothing": smoothing})


def new_point_claims(paper: str) -> list[Claim]:
    """One claim per family of both tables, and those about features and landmarks."""
    families = [
        Claim(
            f"kernel-of-{name.replace('_', '-')}",
            f"The kernel of a point of the family '{name}' is that of its matrices, at new points, too.",
            *(paper, table, measure, (make, 1.0), (make, 1.001)),
            trials=1 if name == "span" else 2,
        )
        for table, measure, makers in (
            ("table FAMILIES", measure_convex, FAMILIES),
            ("table CURVED", measure_curved, CURVED),
        )
        for name, make in makers.items()
        if makers is FAMILIES or name not in FAMILIES
    ]
    return [
        *families,
        Claim(
            "unseen-by-landmarks",
            "What landmarks leave of a kernel at a point is the squared distance of its image from what they see.",
            *(paper, "families, landmarks", measure_unseen, 1.0, 1.001),
            trials=4,
        ),
        Claim(
            "rounded-support-of-polynomials",
            "Support functions of polynomials bear rounding of features by a share of themselves, for every trace.",
            *(paper, "families, rounding", measure_support_above, 1.0, 1.01),
        ),
        Claim(
            "merged-candidates",
            "Centered tessellated kernels are one in a sum, and new rows of ready-made matrices are centered.",
            *(paper, "families, Candidates", measure_merged, 1.0, 1.001),
        ),
        Claim(
            "features-of-kernels",
            "Inner products of features are the values of a kernel; a covariance is it times its variance.",
            *(paper, "kernels, features", measure_features, 1.0, 1.001),
        ),
        Claim(
            "far-points-of-tensor-matern",
            "Products of Matern kernels of many features are those of their formula where factors overflow.",
            *(paper, "table KERNELS", measure_far_points, 1.0, 1.001),
            trials=4,
        ),
    ]
