"""Losses and criteria against their definitions: functions trained again, row left out by row left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from convexkernels import Gaussian, HeldOut, Hinge, LeastSquares, LeaveOneOut
from convexkernels.arrays import Array, Index
from convexkernels.backend import Backend
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.criteria.ridge import matrix_path_residuals, path_residuals, residuals_at
from convexkernels.factored import CombinedFeatures
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.losses import LOSSES
from convexkernels.losses.fit import fit
from convexkernels.spectral.selection import choose_width

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


def gram(rng: Generator, m: int) -> Array:
    """A well-conditioned kernel matrix on random points."""
    return Gaussian(4.0)(rng.uniform(0.0, 1.0, (m, 2))) + 0.05 * np.eye(m)


# ---- the inner problem: sum of weighted losses + lam |f|^2


def losses(name: str, loss: Any, y: Array, f: Any, xp: Any) -> Any:
    """Losses from their definitions, for numpy and for CVXPY."""
    name = name.removesuffix("_no_intercept")
    high = cp.maximum if xp is cp else np.maximum
    absolute = cp.abs if xp is cp else np.abs
    if name == "hinge":
        return high(0.0, 1.0 - cp.multiply(y, f) if xp is cp else 1.0 - y * f)
    if name == "epsilon_insensitive":
        return high(0.0, absolute(y - f) - loss.epsilon)
    if name == "pinball":
        return high(loss.quantile * (y - f), (loss.quantile - 1.0) * (y - f))
    if name == "logistic":
        return cp.logistic(-cp.multiply(y, f)) if xp is cp else np.logaddexp(0.0, -y * f)
    if name in ("least_squares", "interpolation"):
        return cp.square(y - f) if xp is cp else (y - f) ** 2
    raise KeyError(f"no definition of the loss {name!r} here yet")


def measure_fit(subject: tuple[str, float], rng: Generator) -> Verdict:
    """The function that the library finds, its bounds and its losses, against the primal program as it is stated.

    `subject` is the name of a loss, and a factor of lam in that program: 1, or false on purpose.
    """
    name, factor = subject
    kind, make = LOSSES[name]
    K, lam = gram(rng, 10), float(np.exp(rng.uniform(-3.0, 1.0)))
    loss = make().at(lam)
    weights = rng.uniform(0.5, 2.0, 10)
    y = rng.standard_normal(10)
    y = np.where(y > np.median(y), 1.0, -1.0) if kind == "labels" else y
    found = fit(loss, K, y[None, :], weights, tol=1e-9)
    f = found.multiples[0] * (K @ found.W[0] + found.b[0])
    # Interpolation is its own limit: whatever lam is, |f|^2 with f = y.
    exact = loss.needs_definite
    root = np.linalg.cholesky(K)
    a, b = cp.Variable(10), cp.Variable() if loss.intercept else 0.0
    price = 1.0 if exact else factor * lam
    cost = 0.0 if exact else weights @ losses(name, loss, y, root @ a + b, cp)
    limits = [root @ a == factor * y] if exact else []
    best = float(cp.Problem(cp.Minimize(cost + price * cp.sum_squares(a)), limits).solve(solver=cp.CLARABEL))
    ours = np.array([found.value, found.upper]) / (1.0 if exact else loss.cost)
    size = 1e-6 * max(abs(best), 1e-3)
    optimum = Verdict(max(0.0, ours[0] - best, best - ours[1]), size, 1, {"bounds": ours, "optimum": best})
    gap = Verdict(float(ours[1] - ours[0]), size, 1, {"bounds": ours})
    squared = found.multiples[0] ** 2 * float(found.W[0] @ K @ found.W[0])
    direct = squared if exact else float(weights @ losses(name, loss, y, f, np)) + lam * squared
    upper = Verdict(abs(direct - float(ours[1])), 1e-12 * abs(direct), 1, {"direct": direct})
    margins = [_hard_margins(y, rng)] if name.startswith("hinge") else []
    return Verdict.worst([optimum, gap, upper, _pointwise(name, loss, y, rng), _price(loss, lam), *margins])


def _hard_margins(y: Array, rng: Generator) -> Verdict:
    """Where slacks of rounding cost a lot, a multiple of f without any is taken: rows without weight have no slack."""
    f, weights = y * (1.0 - 1e-9 * rng.random(10)), rng.uniform(0.5, 2.0, 10)
    f[0], weights[0] = -f[0], 0.0
    value, _, multiple = Hinge(1e12, intercept=False).primal(f, 2.0, y, weights)
    short = max(0.0, 1.0 - multiple * float((y * f)[1:].min()))
    return Verdict(abs(value - multiple**2) + short, 1e-12, 1, {"f": f, "y": y, "weights": weights})


def _price(loss: Any, lam: float) -> Verdict:
    """The lam is what the loss was asked for (a loss without losses has none)."""
    return Verdict(0.0 if loss.needs_definite else abs(loss.lam - lam), 4.0 * EPS * lam, 1, {})


def _pointwise(name: str, loss: Any, y: Array, rng: Generator) -> Verdict:
    """Losses and slopes entry by entry; slopes between the values of points at both sides, as convexity has it."""
    F = y + rng.standard_normal(10)
    values, slopes = loss.pointwise(y, F)
    expected = losses(name, loss, y, F, np)
    h = 1e-6
    right = (losses(name, loss, y, F + h, np) - expected) / h
    left = (expected - losses(name, loss, y, F - h, np)) / h
    outside = np.maximum(0.0, np.maximum(slopes - right, left - slopes))
    # Differences of rounded values, divided by h.
    slope = Verdict(float(outside.max()), 64.0 * EPS / h * float(1.0 + expected.max()), 1, {"F": F, "slopes": slopes})
    return Verdict.worst(
        [Verdict(float(np.abs(values - expected).max()), 64.0 * EPS * float(1 + expected.max()), 1), slope]
    )


# ---- least squares with rows left out, trained again


def ridge(K: Array, y: Array, weights: Array, lam: float, intercept: bool) -> tuple[Array, float]:
    """Coefficients and intercept of ``sum weights (y - K w - b)^2 + lam w'K w``, from its bordered system."""
    m = len(y)
    if not intercept:
        return np.asarray(np.linalg.solve(K + lam * np.diag(1.0 / weights), y)), 0.0
    A = np.block([[K + lam * np.diag(1.0 / weights), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    solved = np.linalg.solve(A, np.append(y, 0.0))
    return solved[:m], float(solved[m])


def left_out(K: Array, Y: Array, weights: Array, lam: float, blocks: list[Index], intercept: bool) -> Array:
    """Residuals of the functions trained without a block, block by block."""
    R = np.zeros_like(Y)
    for block in blocks:
        rest = np.setdiff1d(np.arange(Y.shape[1]), block)
        for k, y in enumerate(Y):
            w, b = ridge(K[np.ix_(rest, rest)], y[rest], weights[rest], lam, intercept)
            R[k, block] = y[block] - K[np.ix_(block, rest)] @ w - b
    return R


def singles(m: int) -> list[Index]:
    return [np.array([i]) for i in range(m)]


@dataclass(frozen=True)
class Rule:
    """How a risk is formed from residuals: whether rows are weighed, and the factor of lam."""

    weighed: bool = True
    price: float = 1.0


def _case(rng: Generator) -> tuple[Array, Array, Array, float, bool]:
    m = 9
    return (
        gram(rng, m),
        rng.standard_normal((2, m)),
        rng.uniform(0.5, 2.0, m),
        float(np.exp(rng.uniform(-4, 1))),
        bool(rng.integers(2)),
    )


def _clipped_residuals(R: Array, Y: Array, bounds: Any) -> Array:
    return R if bounds is None else Y - np.clip(Y - R, *bounds)


def measure_leave_one_out(rule: Rule, rng: Generator) -> Verdict:
    """The closed form of the leave-one-out risk against as many functions as there are rows."""
    K, Y, weights, lam, intercept = _case(rng)
    bounds = (np.full((2, 1), -0.8), np.full((2, 1), 0.9)) if rng.integers(2) else None
    bound = LeaveOneOut().on(LeastSquares(lam, intercept), Y, weights, bounds=bounds)
    value = bound(K.copy(), float(np.log(lam))).value
    price = rule.price * bound.lam(float(np.log(lam)))
    R = _clipped_residuals(left_out(K, Y, weights, price, singles(9), intercept), Y, bounds)
    share = weights if rule.weighed else np.ones(9)
    expected = float((R**2 @ share).sum() / (2.0 * share.sum()))
    witness = {"K": K, "Y": Y, "weights": weights, "lam": lam, "value": value, "direct": expected}
    return Verdict(abs(value - expected), 1e-11 * abs(expected), 1, witness)


def measure_left_out_blocks(rule: Rule, rng: Generator) -> Verdict:
    """Held-out residuals along a path of lam, from a factor, features and matrix, against functions trained again."""
    K, Y, weights, lam, intercept = _case(rng)
    factor = np.asarray(np.linalg.cholesky(K) if rng.integers(2) else rng.standard_normal((9, 3)))
    K, features = factor @ factor.T, CombinedFeatures(9, [factor], np.ones(1))
    order = rng.permutation(9)
    blocks = None if rng.integers(2) else [np.sort(order[:2]), np.sort(order[2:7]), np.sort(order[7:])]
    lams, verdicts = np.array([lam, 7.0 * lam]), []
    weighed = weights if rule.weighed else np.ones(9)
    for price, R in zip(lams, path_residuals(factor, Y, weights, lams, blocks, intercept=intercept), strict=True):
        expected = left_out(K, Y, weighed, rule.price * price, blocks or singles(9), intercept)
        apart = [float(np.abs(R - expected).max())]
        if not intercept:
            exact = residuals_at(K.copy(), Y, weights, float(price), blocks)
            apart.append(float("inf") if exact is None else float(np.abs(exact - expected).max()))
        if blocks is None:
            (of_matrix,) = matrix_path_residuals(K, Y, weights, np.array([price]), intercept=intercept)
            of_features = residuals_at(features, Y, weights, float(price), None, intercept=intercept)
            apart += [
                float("inf") if R is None else float(np.abs(R - expected).max()) for R in (of_matrix, of_features)
            ]
        witness = {"K": K, "Y": Y, "weights": weights, "lam": price, "residuals": R, "direct": expected}
        verdicts.append(Verdict(max(apart), 1e-9 * (1.0 + float(np.abs(expected).max())), 1, witness))
    return Verdict.worst(verdicts)


def measure_left_out_features(rule: Rule, rng: Generator) -> Verdict:
    """The ridge path of spectral features that chooses sigma and lam against functions trained again.

    The problem is ``mean of weighted squared errors + lam |W|^2``, the risk a share of the variance of the targets.
    """
    m, seed, sigma, lams = 9, int(rng.integers(2**31)), float(rng.uniform(0.5, 2.0)), np.array([1e-3, 1e-1])
    X, Y, weights = rng.uniform(-1.0, 1.0, (m, 2)), rng.standard_normal((m, 1)), rng.uniform(0.5, 2.0, m)
    options: dict[str, Any] = {"stationary": bool(rng.integers(2)), "feature_map": "psi"}
    found = choose_width(
        X, Y, weights, **options, rng=np.random.default_rng(seed), sigmas=[sigma], lams=lams.tolist(), n_components=3
    )
    again = np.random.default_rng(seed)
    rows = again.permutation(m)
    draws = []
    for stream in (again, *again.spawn(1)):  # two draws, on few rows
        drawn = SpectralMap.draw(2, 3, **options, rng=stream, backend=Backend("float64"))
        draws.append(np.asarray(drawn.with_omega(drawn.omega * sigma)(X[rows]).values))
    share = weights[rows] / weights.mean() if rule.weighed else np.ones(m)
    y = Y[rows, 0]
    spread = float(share @ (y - share @ y / m) ** 2) / m
    expected = []
    for lam in lams:
        price = rule.price * m * float(lam)
        left = [left_out(P @ P.T, y[None, :], share, price, singles(m), True)[0] for P in draws]
        expected.append(float(np.mean([share @ R**2 for R in left])) / m / spread)
    witness = {"X": X, "Y": Y, "weights": weights, "risks": found.risks[0], "direct": np.array(expected)}
    return Verdict(float(np.abs(found.risks[0] - expected).max()), 1e-9 * max(expected), 1, witness)


def measure_held_out(rule: Rule, rng: Generator) -> Verdict:
    """The held-out risk of least squares over folds against functions trained again [ST16 (10)]."""
    K, Y, weights, lam, intercept = _case(rng)
    blocks = [np.array([0, 3]), np.array([1, 2, 5]), np.array([8])]
    folds = [(np.setdiff1d(np.arange(9), block), block) for block in blocks]
    bound = HeldOut(folds, tol=1e-12).on(LeastSquares(1.0, intercept), Y, weights)
    value = bound(K, float(np.log(lam))).value
    R, counted = left_out(K, Y, weights, rule.price * lam, blocks, intercept), np.concatenate(blocks)
    share = weights if rule.weighed else np.ones(9)
    expected = float((R[:, counted] ** 2 @ share[counted]).sum() / (2.0 * share[counted].sum()))
    return Verdict(abs(value - expected), 1e-9 * expected, 1, {"K": K, "Y": Y, "value": value, "direct": expected})


# ---- slopes


@dataclass(frozen=True)
class Slope:
    """A criterion, a loss, the first step of differences, and factors of the two slopes: 1, or false on purpose."""

    criterion: Callable[[], Any]
    loss: Any = LeastSquares
    step: float = 0.2
    matrix: float = 1.0
    lam: float = 1.0

    def off(self) -> Slope:
        return replace(self, matrix=1.001, lam=1.001)


def leave_one_out_slope() -> Slope:
    return Slope(LeaveOneOut)


def held_out_slope(loss: Any, step: float) -> Slope:
    """Of two folds; where coefficients have bounds, the step is one on which they stay where they are."""
    folds = [(np.arange(3, 9), np.arange(3)), (np.r_[0:4, 7:9], np.arange(4, 7))]
    return Slope(lambda: HeldOut(folds, tol=1e-13), loss, step)


def _predictions(bound: Any, K: Array, log_lam: float) -> Array:
    """What a criterion compares with targets, where it is not clipped; rows are outputs."""
    at = bound(K.copy(), log_lam)
    if isinstance(bound.criterion, LeaveOneOut):
        return np.asarray(bound.Y - at.residual.T)
    parts = zip(bound.folds, at.trained, strict=True)
    return np.hstack([t.fit.W @ K[np.ix_(train, rest)] + t.fit.b[:, None] for (train, rest), t in parts])


def _between(F: Array) -> tuple[Array, Array]:
    """Bounds that clip predictions at both ends, as far from all of them as can be: small steps pass none."""
    F = np.sort(F, axis=1)
    half, gaps, every = F.shape[1] // 2, np.diff(F, axis=1), np.arange(len(F))
    places = gaps[:, :half].argmax(axis=1), half + gaps[:, half:].argmax(axis=1)
    low, high = (0.5 * (F[every, i] + F[every, i + 1])[:, None] for i in places)
    return low, high


def measure_slopes(subject: Slope, rng: Generator) -> Verdict:
    """Slopes in K and in log lam against differences of the criterion's own values, in half of the cases clipped."""
    K, Y, weights, lam, intercept = _case(rng)
    Y = np.where(np.median(Y, axis=1, keepdims=True) < Y, 1.0, -1.0) if subject.loss.of_labels else Y
    step, loss, log_lam = subject.step, subject.loss(1.0, intercept=intercept), float(np.log(lam))
    bound = subject.criterion().on(loss, Y, weights)
    if rng.integers(2):
        bound, step = (
            subject.criterion().on(loss, Y, weights, bounds=_between(_predictions(bound, K, log_lam))),
            0.1 * step,
        )
    direction = rng.standard_normal((9, 9))
    direction = 0.01 * (direction + direction.T)

    def along(t: float, s: float) -> tuple[float, float]:
        value = float(bound(K + t * direction, log_lam + s).value)
        return value, 1e-12 * abs(value)

    M, slope_lam = bound(K.copy(), log_lam).slopes()
    if subject.criterion is LeaveOneOut:
        M = np.tril(M) + np.tril(M, -1).T
    in_K, error_K = richardson_derivative(lambda t: along(t, 0.0), step)
    in_lam, error_lam = richardson_derivative(lambda s: along(0.0, s), step)
    claimed = subject.matrix * float(np.sum(M * direction))
    witness = {"K": K, "Y": Y, "weights": weights, "lam": lam, "direction": direction}
    return Verdict.worst(
        [
            Verdict(abs(claimed - in_K), error_K + 1e-6 * abs(in_K), 1, witness | {"slope": in_K}),
            Verdict(abs(subject.lam * slope_lam - in_lam), error_lam + 1e-6 * abs(in_lam), 1, witness),
        ]
    )
