"""Steps of methods: quasi-Newton matrices, line searches, Newton systems, and what rounding is charged with."""

from __future__ import annotations

from typing import Any

import numpy as np

from convexkernels import Candidates, Gaussian, Hinge, KernelLearning
from convexkernels.arrays import Array
from convexkernels.backend import Backend
from convexkernels.cells.kernel_learner import KernelLearner
from convexkernels.cells.learner import CellRows
from convexkernels.checking import Verdict
from convexkernels.few_vectors import FEW, times
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.operator import TILE, GramOperator
from convexkernels.losses import LOSSES
from convexkernels.losses.fit import fit, measure
from convexkernels.losses.quadratic_terms import DenseTerm, FactoredTerm
from convexkernels.problems.rounding import charge_above, charged_gap
from convexkernels.solvers.convex.shifted_systems import LowRank, ShiftedSystems
from convexkernels.solvers.nonconvex.bfgs import (
    CURVATURE,
    SUFFICIENT_DECREASE,
    _DenseInverseHessian,
    _LimitedInverseHessian,
    _line_search,
    _shorter,
)
from convexkernels.spectral.inner import Moments
from proofs_check.claim import Claim
from proofs_check.risk_formulas import gram, losses

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def updated(H: Array, s: Array, y: Array) -> Array:
    """The matrix nearest to H, in the norm of BFGS, that is symmetric and takes y to s."""
    E = np.eye(len(s)) - np.outer(s, y) / (s @ y)
    return np.asarray(E @ H @ E.T + np.outer(s, s) / (s @ y))


def measure_bfgs(factor: float, rng: Generator) -> Verdict:
    """Directions are -H g for the product form of the update, from a multiple of the identity that suits y.

    The multiple is that of the first pair, with limited memory that of the last one; `factor` multiplies directions.
    """
    n = int(rng.integers(2, 6))
    G, g = rng.standard_normal((n, n)), rng.standard_normal(n)
    A, pairs = G @ G.T + np.eye(n), rng.standard_normal((4, n))
    verdicts = []
    for model, which in ((_DenseInverseHessian(n), 0), (_LimitedInverseHessian(), -1)):
        for s in pairs:
            model.update(s, A @ s)  # type: ignore[attr-defined]
        s, y = pairs[which], A @ pairs[which]
        H = (s @ y) / (y @ y) * np.eye(n)
        for s in pairs:
            H = updated(H, s, A @ s)
        for v, direct in ((g, -(H @ g)), (A @ pairs[-1], -pairs[-1])):
            found = model.direction(v)  # type: ignore[attr-defined]
            size = 1e-9 * (1.0 + float(np.abs(H).max() * np.abs(v).sum()))
            verdicts.append(
                Verdict(float(np.abs(factor * found - direct).max()), size, 1, {"A": A, "pairs": pairs, "v": v})
            )
    return Verdict.worst(verdicts)


class _Quartic:
    """``sum (x - a)^4 / 4 + x'Ax / 2`` and its gradient, as a descent wants them."""

    def __init__(self, x: Array, a: Array, A: Array) -> None:
        self.value = float(((x - a) ** 4).sum() / 4.0 + 0.5 * x @ A @ x)
        self._gradient = (x - a) ** 3 + A @ x

    def gradient(self) -> Array:
        return self._gradient


def measure_line_search(factor: float, rng: Generator) -> Verdict:
    """A step has decrease enough and is long enough (weak Wolfe), from first steps that are too short or too long.

    A step back is to the least point of the parabola through what is known, inside its limits; `factor` multiplies it.
    """
    n = 3
    a, G, x = 2.0 * rng.standard_normal(n), rng.standard_normal((n, n)), rng.standard_normal(n)
    A, wrong = G @ G.T, 0.0
    here = _Quartic(x, a, A)
    direction = -here.gradient()
    slope = float(here.gradient() @ direction)
    for first in (1e-4, 1.0, 30.0, 3000.0):
        seen: list[Array] = []

        def there_at(z: Array, seen: list[Array] = seen) -> _Quartic:
            seen.append(z)
            return _Quartic(z, a, A)

        found: Any = _line_search(there_at, x, here.value, direction, slope, first, 40)
        wrong += float(not np.array_equal(seen[-1], found[0]))
        step = float((found[0] - x) @ direction / (direction @ direction))
        there = _Quartic(x + step * direction, a, A)
        enough = there.value <= here.value + SUFFICIENT_DECREASE * step * slope + 1e-12 * abs(here.value)
        wrong += float(not enough) + float(not float(there.gradient() @ direction) >= CURVATURE * slope)
    bend, step = float(rng.uniform(0.5, 5.0)), float(rng.uniform(0.2, 3.0))
    at = float(rng.uniform(0.1, 0.45)) * step  # phi(t) = bend (t - at)^2
    back = _shorter(0.0, step, bend * at**2, bend * (step - at) ** 2, -2.0 * bend * at)
    return Verdict(wrong + abs(back - factor * at), 1e-10, 1, {"a": a, "x": x, "at": np.array(at)})


def measure_newton_systems(factor: float, rng: Generator) -> Verdict:
    """``(K + E^-1) dw + 1 db = rho``, ``sum dw = -balance``, with the matrix and with a factor of it.

    `factor` multiplies the balance.
    """
    m, q, intercept = 7, 3, bool(rng.integers(2))
    V, E, rho = rng.standard_normal((m, q)), rng.uniform(0.1, 5.0, m), rng.standard_normal(m)
    K, balance = V @ V.T, float(rng.uniform(0.5, 2.0)) if intercept else 0.0
    bordered = np.ones((m + 1, m + 1))
    bordered[:m, :m], bordered[m, m] = K + np.diag(1.0 / E), 0.0
    if intercept:
        answer = np.linalg.solve(bordered, np.append(rho, -factor * balance))
    else:
        answer = np.append(factor * np.linalg.solve(bordered[:m, :m], rho), 0.0)
    verdicts = []
    for term in (DenseTerm(K), FactoredTerm(V)):
        term.values(np.zeros(m))
        assert term.factorize(E, intercept)
        image, dw, db = term.solve(rho, balance)
        apart = max(np.abs(dw - answer[:m]).max(), abs(db - answer[m]), np.abs(image - K @ answer[:m]).max())
        verdicts.append(Verdict(float(apart), 1e-9 * (1.0 + float(np.abs(K).max())), 1, {"V": V, "E": E, "rho": rho}))
    return Verdict.worst(verdicts)


def measure_shifted(factor: float, rng: Generator) -> Verdict:
    """Gaps of systems are primal less dual of ridge regression at their points, weighted, with and without intercept.

    The preconditioner is the inverse of ``Z Z' + lam S^-1``; `factor` multiplies gaps.
    """
    m, lams, intercept = 12, np.array([0.3, 2.0]), bool(rng.integers(2))
    X, Y, weights = rng.uniform(0.0, 1.0, (m, 2)), rng.standard_normal((2, m)), rng.uniform(0.5, 2.0, m)
    K, Z = Gaussian(3.0)(X), rng.standard_normal((m, 3))
    low, R = LowRank(Z, weights), rng.standard_normal((2, m))
    verdicts = []
    for lam, right, found in zip(lams, R, low.solve(R, lams), strict=True):
        direct = np.linalg.solve(Z @ Z.T + np.diag(lam / weights), right)
        verdicts.append(Verdict(float(np.abs(found - direct).max()), 1e-9, 1, {"Z": Z, "lam": lam}))
    systems = ShiftedSystems(GramOperator(Gaussian(3.0), X, np.float64), low, Y, lams, intercept)
    for _ in range(3):
        systems.step(np.arange(2))
        for lam, y, w, b, gap in zip(lams, Y, systems.W, systems.intercepts(), systems.gaps(), strict=True):
            form = float(w @ K @ w)
            primal = float(weights @ (y - K @ w - b) ** 2) + lam * form
            dual = lam * float(2.0 * y @ w - lam * w**2 @ (1.0 / weights) - form)
            verdicts.append(Verdict(abs(factor * gap - (primal - dual)), 1e-9 * primal, 1, {"X": X, "Y": Y, "w": w}))
    return Verdict.worst(verdicts)


def measure_few_vectors(factor: float, rng: Generator) -> Verdict:
    """Products of a few vectors with a matrix, however it lies, and of few or many with a Gram matrix by tiles.

    `factor` multiplies what is found.
    """
    k, m, n = int(rng.integers(1, 8)), int(rng.integers(250, 270)), int(rng.integers(1100, 1200))
    A, V, U = rng.standard_normal((m, n)), rng.standard_normal((k, m)), rng.standard_normal((k, n))
    verdicts = []
    for lies in ("C", "F"):
        B = np.asarray(A, order=lies)
        ahead, back = np.einsum("ki,ij->kj", V, A), np.einsum("kj,ij->ki", U, A)
        apart = [factor * times(V, B) - ahead, factor * times(U, B.T) - back]
        verdicts += [Verdict(float(np.abs(some).max()), 1e-10, 1, {"A": A, "V": V}) for some in apart]
    X = rng.uniform(0.0, 1.0, (TILE + int(rng.integers(1, 8)), 2))
    K = np.exp(-3.0 * np.square(X[:, None] - X).sum(axis=2))
    for W in (rng.standard_normal((k, len(X))), rng.standard_normal((FEW + 1, len(X)))):
        scale, exact = float(np.abs(W).sum(axis=1).max()), np.einsum("ki,ij->kj", W, K)
        for dtype, digits in ((np.float32, 1e-5), (np.float64, 1e-12)):
            apart = factor * GramOperator(Gaussian(3.0), X, dtype).product(W) - exact
            verdicts.append(Verdict(float(np.abs(apart).max()), digits * scale, 1, {"X": X, "W": W}))
    return Verdict.worst(verdicts)


def measure_charge(factor: float, rng: Generator) -> Verdict:
    """Objectives differ by no more than the charge for values within errors, and by hardly less in the worst case.

    ``cost sum of weighted losses + scale w'f / 2``, for every loss with bounds; losses themselves are right to four
    units in the last place. `factor` multiplies the charge.
    """
    verdicts = []
    for name, (kind, make) in LOSSES.items():
        loss: Any = make()
        if loss.needs_definite:
            continue
        F, W, weights = rng.standard_normal((1, 8)), rng.standard_normal((1, 8)), rng.uniform(0.5, 2.0, 8)
        Y = rng.permutation(np.tile([-1.0, 1.0], 4))[None] if kind == "labels" else F + rng.choice([-2.0, 2.0], (1, 8))
        errors = 1e-6 * rng.uniform(0.5, 2.0, (1, 8))
        charge = factor * charge_above(loss, Y, weights, F, W, errors)

        def terms(move: Array, name: str = name, loss: Any = loss, Y: Array = Y, G: Array = F) -> Array:
            return np.asarray(loss.cost * losses(name, loss, Y[0], (G + move)[0], np))

        plain = terms(np.zeros((1, 8)))
        moves: Any = [np.abs(terms(s * errors) - plain) for s in (-1.0, 1.0)]
        worst = float(np.maximum(*moves) @ weights) + 0.5 * loss.scale * float((np.abs(W) @ errors.T)[0, 0])
        witness = {"loss": name, "F": F, "Y": Y, "errors": errors}
        verdicts.append(Verdict(max(0.0, worst - charge, 0.99999 * charge - worst), 1e-10 * charge + 1e-14, 1, witness))
        units, rounded = 4.0 * EPS * float(plain @ weights), charge_above(loss, Y, weights, F, W, np.zeros((1, 8)))
        verdicts.append(Verdict(abs(factor * rounded - units), 1e-9 * units, 1, witness))
        verdicts.append(charged_bounds(loss, Y, weights, rng))
    return Verdict.worst([*verdicts, charged_cell(rng)])


def charged_bounds(loss: Any, Y: Array, weights: Array, rng: Generator) -> Verdict:
    """Both bounds of a kernel are charged for sums over entries and differences that are right to four units.

    Entries have sizes ``sqrt(s_i s_j)``, of which values are sums; ``y - f - b`` is a difference of ``y - f`` where
    there is a b, and epsilon is another one. The lower bound is half a product with such values, and one with targets.
    """
    squares, tube = rng.uniform(1.0, 50.0, 8), getattr(loss, "epsilon", 0.0)
    K, roots, y = gram(rng, 8), np.sqrt(squares), Y[0]
    found = fit(loss, K, Y, weights)
    w, b = found.multiples[0] * found.W[0], float(found.multiples[0] * found.b[0])
    f = K @ w
    differences = (np.abs(y - f) if b else np.zeros(8)) + (np.abs(y - f - b) if tube else 0.0)
    errors = 4.0 * EPS * (roots * float(roots @ np.abs(w)) + differences)
    above = charge_above(loss, Y, weights, (f + b)[None], w[None], errors[None])
    v = np.abs(found.W[0])
    below = loss.scale * 4.0 * EPS * float(v @ (0.5 * roots * float(roots @ v) + np.abs(y) + tube))
    gap = charged_gap(loss, Y, weights, squares, found, found.W @ K)
    witness = {"K": K, "Y": Y, "weights": weights, "squares": squares, "loss": repr(loss)}
    return Verdict(abs(gap.charged / (above + below) - 1.0), 1e-6, 1, witness)


def charged_cell(rng: Generator) -> Verdict:
    """A function of a cell that is within the tolerance, but not with its charge, is trained to what this leaves."""
    m, loss = 30, Hinge(1.0, intercept=False)
    K, Y, weights = gram(rng, m), rng.permutation(np.tile([-1.0, 1.0], 15))[None], rng.uniform(0.5, 2.0, m)
    known = measure(loss, K, Y, weights, 0.98 * fit(loss, K, Y, weights).alpha)
    gap = known.upper - known.value
    unit = charged_gap(loss, Y, weights, np.full(m, 1e6), known, known.W @ K).charged
    learner = KernelLearner(loss, tol=1.5 * gap / known.upper, begin=known.alpha)
    rows = CellRows(np.zeros((m, 1)), Y, weights)
    _, found = learner._by_factors(loss, K, np.full(m, 1e6 * gap / unit), rows, np.inf)
    return Verdict(max(0.0, found.relative_gap - learner.tol), 0.0, 1, {"K": K, "Y": Y, "weights": weights})


def measure_steepness(factor: float, rng: Generator) -> Verdict:
    """A step of the proximal method is no longer than one over twice the largest eigenvalue, and hardly shorter."""
    G, drawn = rng.standard_normal((6, 9)), SpectralMap(np.zeros((1, 3)), None, 3, Backend("float64"))
    A = G @ G.T
    exact = factor * 2.0 * float(np.linalg.eigvalsh(A)[-1])
    found = Moments(drawn, A, None, None, None).steepness()
    return Verdict(max(0.0, exact - found, found - 1.06 * exact), 1e-12 * exact, 1, {"A": A})


def measure_second_derivatives(factor: float, rng: Generator) -> Verdict:
    """Differences of the gradient along a direction, where the same coefficients are inside their bounds.

    Of 3 weights there are more rows, of 12 fewer than weights; `factor` multiplies the second derivative.
    """
    name = str(rng.choice(["least_squares", "least_squares_no_intercept", "hinge", "epsilon_insensitive", "pinball"]))
    loss, m, n = LOSSES[name][1]().at(0.01), 8, int(rng.choice([3, 12]))
    while True:
        X, Y = rng.uniform(size=(m, 2)), rng.standard_normal((m, 2))
        Y = np.where(np.median(Y, axis=0) < Y, 1.0, -1.0) if loss.of_labels else Y
        widths = rng.uniform(5.0, 200.0, n)
        problem = KernelLearning(Candidates([Gaussian(float(width)) for width in widths], "none"), loss, X, Y)
        theta, v, step = rng.uniform(0.5, 1.5, n) / n, rng.standard_normal(n) / n, 1e-5
        found = [problem.evaluate(theta + t * step * v, tol=1e-13) for t in (-1.0, 0.0, 1.0)]
        inside = [
            [loss.free(alpha, y, problem.weights)[0].tolist() for alpha, y in zip(one.alpha, problem.Y, strict=True)]
            for one in found
        ]
        if inside[0] == inside[1] == inside[2] and max(map(len, inside[1])) > 1:
            break
    gradients = [problem.lower_bound(one)[1] for one in found]
    R = problem.curvature(found[1], problem.gram_set.matrix(theta))
    if R is None:
        return Verdict(np.inf, 1.0, 1, {"X": X, "theta": theta})
    direct = (gradients[2] - gradients[0]) / (2.0 * step)
    error = float(np.abs(factor * (R.T @ (R @ v)) - direct).max())
    return Verdict(error, 2e-4 * float(np.abs(direct).max()), 1, {"X": X, "theta": theta, "v": v})


def step_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "quasi-newton-matrices",
            "Directions of BFGS, with and without limited memory, are those of its update as a product.",
            *(paper, "solvers, BFGS", measure_bfgs, 1.0, 1.001),
        ),
        Claim(
            "weak-wolfe",
            "Steps of a descent have decrease enough and are long enough; steps back are those of a parabola.",
            *(paper, "solvers, BFGS", measure_line_search, 1.0, 1.001),
        ),
        Claim(
            "newton-systems",
            "Newton systems of interior points are solved as the bordered ones, by a matrix and by a factor of it.",
            *(paper, "losses, interior points", measure_newton_systems, 1.0, 1.001),
        ),
        Claim(
            "gaps-of-systems",
            "Gaps of conjugate gradients are primal less dual, and their preconditioner is the inverse that is said.",
            *(paper, "solvers, conjugate gradients", measure_shifted, 1.0, 1.001),
        ),
        Claim(
            "products-of-few-vectors",
            "Products of a few vectors with a matrix that is read once, and of any number with tiles of a Gram matrix, "
            "are sums of products.",
            *(paper, "kernels, products by tiles", measure_few_vectors, 1.0, 1.001),
        ),
        Claim(
            "charged-rounding",
            "Certificates are charged with the most that values within their errors can change the objective, and with "
            "the rounding of what they are sums and differences of.",
            *(paper, "problems, rounding", measure_charge, 1.0, 0.999),
        ),
        Claim(
            "second-derivatives",
            "Newton steps in the kernel have the second derivatives of the value, where no bound is met or left.",
            *(paper, "problems, curvature", measure_second_derivatives, 1.0, 1.001),
        ),
        Claim(
            "steepness-of-moments",
            "The proximal method of the trace norm has a Lipschitz constant of slopes, hardly more than the least.",
            *(paper, "spectral, inner problem", measure_steepness, 1.0, 1.07),
        ),
    ]
