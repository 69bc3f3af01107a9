"""Checks behind the claims about excess risks: the approximation error, oracle inequality, Rademacher complexity."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from convexkernels import (
    HierarchicalGaussian,
    HierarchicalGaussianClassifier,
    Hinge,
    LeastSquares,
    Linear,
    Pinball,
    SpectralKernelClassifier,
    SpectralKernelRegressor,
    Training,
    TreeSearch,
)
from convexkernels.arrays import Array
from convexkernels.bounds import (
    Bound,
    ComplexityNumbers,
    SVMNumbers,
    approximation_error,
    excess_risk_bound,
    hierarchical_risk_bound,
    rademacher_bound,
    rademacher_rate,
)
from convexkernels.checking import Verdict
from convexkernels.losses.fit import fit
from convexkernels.spectral.losses import score_loss

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def _distribution(rng: Generator) -> tuple[HierarchicalGaussian, Array, Array, Array]:
    """A kernel of depth 2, ten points with both labels each, and the masses of all twenty pairs."""
    children = [HierarchicalGaussian([1.5, 2.0]), HierarchicalGaussian([2.5], features=[1])]
    kernel = HierarchicalGaussian([1.0, 0.8], children)
    points = rng.uniform(-1.0, 1.0, (10, 2))
    chance, share = rng.uniform(0.05, 0.95, 10), rng.dirichlet(np.full(10, 3.0))
    return (
        kernel,
        np.vstack([points, points]),
        np.repeat([1.0, -1.0], 10),
        np.r_[share * chance, share * (1.0 - chance)],
    )


def _best_risks(masses: Array, hinge: bool) -> float:
    """R* by hand: twice the smaller mass of a point for the hinge loss, the variance of its label for squares."""
    up, down = masses[:10], masses[10:]
    return float(np.sum(2.0 * np.minimum(up, down) if hinge else 4.0 * up * down / (up + down)))


def measure_approximation_error(factor: float, rng: Generator) -> Verdict:
    """The library's bounds enclose A(lam), computed by hand for squares and by CVXPY for the hinge loss.

    `factor` multiplies lam. A is an infimum of lines in lam: it grows, less and less; and it vanishes with lam, the
    kernel being strictly positive on distinct points. What rounding takes is charged for, and not much more.
    """
    import cvxpy as cp

    kernel, X, y, masses = _distribution(rng)
    lam = float(10.0 ** rng.uniform(-3.0, -1.0))
    K = kernel(X[:10])
    root, total, mean = np.linalg.cholesky(K), masses[:10] + masses[10:], masses[:10] - masses[10:]
    # Squares: (diag(total) K + lam) w = mean, and the value is  R(0) - <mean, f>.
    f = K @ np.linalg.solve(total[:, None] * K + lam * np.eye(10), mean)
    squares = 1.0 - float(mean @ f) - _best_risks(masses, False)
    v = cp.Variable(10)
    values = root @ v
    risk = masses[:10] @ cp.pos(1.0 - values) + masses[10:] @ cp.pos(1.0 + values)
    program = cp.Problem(cp.Minimize(lam * cp.sum_squares(v) + risk))
    hinge = float(program.solve(solver=cp.CLARABEL)) - _best_risks(masses, True)
    worst = 0.0
    for loss, exact in ((LeastSquares(), squares), (Hinge(), hinge)):

        def A(at: float, loss: Any = loss) -> Any:
            return approximation_error(kernel, X, y, factor * at, loss=loss, masses=3.0 * masses, tol=1e-8)

        found, other, tiny = A(lam), A(2.0 * lam), A(1e-9)
        worst = max(worst, found.lower - exact, exact - found.upper, found.upper - found.lower - 1e-7)
        worst = max(worst, found.lower - other.upper, other.lower - 2.0 * found.upper, tiny.lower - 1e-3)
    witness = {"X": X, "masses": masses, "lam": lam, "squares": squares, "hinge": hinge}
    enclosed = Verdict(worst, 2e-7, 1, witness)
    return Verdict.worst([enclosed, _beside_noise(rng), _nearly_free(masses), _nearly_flat(rng)])


def _beside_noise(rng: Generator) -> Verdict:
    """Beside noise of ten thousand times A and more, summed over many points, the exact A is between its bounds.

    Of squares, and points between which the kernel is 0: f is ``p c / (lam + p)`` at a point of mass p whose targets
    have the mean c. In units of the squared noise.
    """
    m, lam, noise = 400, float(rng.uniform(1e5, 1e7)), float(rng.uniform(1e2, 1e3))
    low, high = float(rng.uniform(0.5, 1.0)) - noise, float(rng.uniform(0.5, 1.0)) + noise
    X, y = np.tile(np.eye(m), (2, 1)), np.repeat([low, high], m)
    p, c = Fraction(1, m), (Fraction(low) + Fraction(high)) / 2
    exact = m * Fraction(lam) * p * c**2 / (Fraction(lam) + p)
    found = approximation_error(Linear(), X, y, lam, loss=LeastSquares())
    outside = max(Fraction(found.lower) - exact, exact - Fraction(found.upper), Fraction(0))
    witness = {"lam": lam, "targets": np.array([low, high]), "bounds": np.array([found.lower, found.upper])}
    return Verdict(float(outside) / noise**2, 0.0, 1, witness)


def _nearly_free(masses: Array) -> Verdict:
    """By the hinge loss, without noise, a tiny A is lam for each point of such a kernel, and charges are no more."""
    X, y = np.tile(np.eye(10), (2, 1)), np.tile([1.0, -1.0], 10)
    found = approximation_error(Linear(), X, y, 1e-9, loss=Hinge(), masses=masses)
    outside = max(0.0, found.lower - 1e-8, 1e-8 - found.upper, found.charged)
    return Verdict(outside, 1e3 * EPS, 1, {"masses": masses, "bounds": np.array([found.lower, found.upper])})


def _nearly_flat(rng: Generator) -> Verdict:
    """At one point with the targets 0 and -1, by the pinball loss whose risk is larger at 0 by an excess near rounding.

    From 0 the risk falls by the excess over a unit, so that for lam = 1 A is the excess less a fourth of its square.
    """
    excess, q = float(rng.uniform(1e-13, 5e-13)), float(rng.uniform(0.55, 0.9))
    masses = np.array([1.0 - q - excess, q + excess])
    found = approximation_error(Linear(), np.ones((2, 1)), [0.0, -1.0], 1.0, loss=Pinball(quantile=q), masses=masses)
    outside = max(0.0, found.lower - excess, excess - found.upper, found.charged - 1e-13)
    return Verdict(outside, 4.0 * EPS, 1, {"excess": excess, "quantile": q})


def measure_oracle(bound: Callable[..., Bound], rng: Generator) -> Verdict:
    """The terms of the theorem, one by one; and SVMs of samples keep it, even without the term that is unknown.

    The excess risk of a clipped SVM is a sum here, the distribution being known.
    """
    kernel, X, y, masses = _distribution(rng)
    n, tau, lam = int(rng.integers(20, 200)), float(rng.uniform(1.0, 4.0)), float(10.0 ** rng.uniform(-3.0, -1.0))
    A = approximation_error(kernel, X, y, lam, loss=Hinge(), masses=masses).upper
    K = float(rng.uniform(0.5, 2.0))
    terms = {
        (0.0, 0.0, K): K * np.log(n) / (lam * n),
        (A, 0.0, 0.0): 9.0 * A + 15.0 * tau * np.sqrt(A / lam) / n,
        (0.0, 2.0, 0.0): 600.0 * tau * n**-0.5,
    }
    found = [bound(SVMNumbers(a, lam, n, B), tau=tau, constant=k).value for a, B, k in terms]
    apart = float(np.max(np.abs(np.array(found) / np.array(list(terms.values())) - 1.0)))
    rows = rng.choice(20, n, p=masses)
    loss = Hinge(intercept=False).at(lam)
    svm = fit(loss, kernel(X[rows]), y[None, rows], np.full(n, 1.0 / n), tol=1e-6)
    values = np.clip(kernel(X, X[rows]) @ svm.W[0], -1.0, 1.0)
    excess = float(masses @ (1.0 - y * values)) - _best_risks(masses, True)
    whole = bound(SVMNumbers(A, lam, n, 2.0), tau=tau, constant=0.0)
    chance = abs(whole.probability - max(0.0, 1.0 - 3.0 * np.exp(-tau)))
    witness = {"n": n, "tau": tau, "lam": lam, "A": A, "excess": excess}
    return Verdict(max(apart, excess - whole.value, -excess - 1e-9, chance), 64.0 * EPS, 1, witness)


def measure_fitted_svm(read: Callable[[Any], SVMNumbers], rng: Generator) -> Verdict:
    """Numbers read from a fitted estimator: A is what its own function costs on its rows [ST16 Theorem 3.2].

    The distribution has the weights of the rows for masses.
    """
    X, weights = rng.uniform(-1.0, 1.0, (40, 2)), rng.uniform(0.5, 3.0, 40)
    y = X[:, 0] + X[:, 1] ** 2 > 0.3
    search = TreeSearch(max_iter=2)  # any weights will do
    model: Any = HierarchicalGaussianClassifier(2, loss="hinge", search=search, random_state=0)
    model.fit(X, y, sample_weight=weights)
    found, problem = read(model), model.solution_.problem
    Z, total, c = model.scaling_.apply(X), float(weights.sum()), model.function_.coefficients(40)
    there = [int(((Z - x) ** 2).sum(axis=1).argmin()) for x in problem.X]  # rows in the order of the problem
    lam, K = float(np.exp(model.solution_.theta[-1])) / total, model.tree_(problem.X)
    losses = np.maximum(0.0, 1.0 - np.where(y[there], 1.0, -1.0) * (c @ K)[0])
    cost = lam * float((c @ K @ c.T)[0, 0]) + float(weights[there] @ losses) / total
    numbers = max(abs(found.lam / lam - 1.0), abs(found.n - 40), abs(found.largest_loss - 2.0))
    worst = max(numbers, abs(found.approximation_error / cost - 1.0) - 1e-3)
    return Verdict(worst, 1e-9, 1, {"X": X, "y": y, "weights": weights, "lam": lam, "cost": cost})


def measure_fitted_complexity(bound: Callable[..., float], rng: Generator) -> Verdict:
    """Bounds of a fitted model from its features, and the complexity by drawn signs below them [LLW20 (11), (12)].

    Of a regressor the bound is that of functions in units of y, which differ at new points as its predictions do.
    """
    X = rng.uniform(-1.0, 1.0, (40, 2))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0.0)
    settings: dict[str, Any] = {"n_components": 20, "sigma": 1.0, "lam1": 1e-3, "training": Training(max_epochs=1)}
    model = SpectralKernelClassifier(feature_map="psi", random_state=0, **settings).fit(X, y)
    features, W = model.kernel_.transform(X), np.asarray(model.solution_.theta.W, dtype=np.float64)
    B = float(np.linalg.svd(W, compute_uv=False).sum())
    exact = B / 40.0 * np.sqrt(3.0 * float(np.sum(features**2)))
    claimed = bound(model, X)
    signs = rng.choice([-1.0, 1.0], (400, 40, 3))
    drawn = B / 40.0 * np.linalg.norm(np.einsum("ni,snk->sik", features, signs), 2, axis=(1, 2))
    excess = float(drawn.mean() - 6.0 * drawn.std() / 20.0 - claimed) / claimed
    coarser = rademacher_rate(model, 40)
    excess = max(excess, claimed - coarser, abs(coarser / (B * np.sqrt(3.0 / 40.0)) - 1.0))
    classes = Verdict(max(abs(claimed / exact - 1.0), excess), 1e4 * EPS, 1, {"X": X, "y": y, "claimed": claimed})
    y = float(np.exp(rng.uniform(-5.0, 5.0))) * (3.0 + np.sin(3.0 * X[:, 0]) + X[:, 1])
    numbers = SpectralKernelRegressor(feature_map="psi", random_state=0, **settings).fit(X, y)
    return Verdict.worst([classes, _complexity_of_numbers(bound, numbers, X, rng.uniform(-1.0, 1.0, (20, 2)))])


def _complexity_of_numbers(bound: Callable[..., float], model: Any, X: Array, Z: Array) -> Verdict:
    """Bounds of a fitted regressor, whose predictions differ at new points by units of y for those of W'phi."""
    W = np.asarray(model.solution_.theta.W, dtype=np.float64)
    unit = float(np.ptp(model.predict(Z)) / np.ptp(model.kernel_.transform(Z) @ W))
    B, trace = unit * float(np.linalg.svd(W, compute_uv=False).sum()), float(np.sum(model.kernel_.transform(X) ** 2))
    exact = np.array([B / len(X) * np.sqrt(trace), B / np.sqrt(len(X))])
    apart = np.abs(np.array([bound(model, X), rademacher_rate(model, len(X))]) / exact - 1.0)
    return Verdict(float(apart.max()), 1e-6, 1, {"X": X, "Z": Z, "unit": unit, "exact": exact})


def scaled_complexity(model: Any, X: Array) -> float:
    """The Frobenius norm of W for its trace norm."""
    W = np.asarray(model.solution_.theta.W, dtype=np.float64)
    return rademacher_bound(model, X) * float(np.linalg.norm(W) / np.linalg.norm(W, "nuc"))


def measure_lipschitz(constant: Callable[[str, int], float], rng: Generator) -> Verdict:
    """No two scores have losses farther apart than L times their distance, and some have them nearly as far."""
    worst = 0.0
    for name, K in (("hinge", 1), ("hinge", 3), ("logistic", 1), ("logistic", 3)):
        loss, L = score_loss(name), constant(name, K)
        Y = np.array([[1.0]]) if K == 1 else np.eye(3)[[1]]
        F = rng.normal(0.0, 4.0, (60, K))
        # From far on the wrong side along the steepest direction, where no slope is flatter than its limit.
        wrong = np.array([[-40.0]]) if K == 1 else np.array([[40.0, -40.0, -80.0]])
        step = np.array([[-1.0]]) if K == 1 else np.array([[1.0, -1.0, 0.0]])
        F = np.vstack([F, wrong, wrong + step])
        values = loss.pointwise(F, np.repeat(Y, len(F), axis=0), np)[0]
        distances = np.linalg.norm(F[:, None] - F, axis=2) + np.eye(len(F))
        steepest = float((np.abs(values[:, None] - values) / distances).max())
        worst = max(worst, steepest - L, L - steepest)
    return Verdict(worst, 1e-9, 1, {})


def measure_excess(bound: Callable[..., Bound], rng: Generator) -> Verdict:
    """The two terms of [LLW20 Theorem 3, (10)]: by the contraction sqrt 2 L R four times, and the open constant."""
    R, L, delta = float(rng.uniform(0.0, 1.0)), float(rng.uniform(0.5, 2.0)), float(rng.uniform(0.01, 0.5))
    n, c = int(rng.integers(10, 1000)), float(rng.uniform(0.5, 2.0))
    found = bound(ComplexityNumbers(R, L, n), failure=delta, constant=c)
    contracted = np.sqrt(2.0) * L * R
    exact = 4.0 * contracted + c * np.sqrt(-np.log(delta)) / np.sqrt(n)
    return Verdict(
        abs(found.value / exact - 1.0) + abs(found.probability + delta - 1.0), 16.0 * EPS, 1, {"R": R, "L": L}
    )


def smaller(svm: SVMNumbers, **named: Any) -> Bound:
    """All terms one in a thousand less."""
    value, probability = hierarchical_risk_bound(svm, **named)
    return Bound(0.999 * value, probability)


def larger_lam(model: Any) -> SVMNumbers:
    """Lam beside the mean, a little too large."""
    found = SVMNumbers.of(model)
    return found._replace(lam=1.001 * found.lam)


def three_times(numbers: ComplexityNumbers, **named: Any) -> Bound:
    """3 sqrt 2 in place of 4 sqrt 2."""
    return excess_risk_bound(numbers._replace(complexity=0.75 * numbers.complexity), **named)
