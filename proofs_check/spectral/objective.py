"""The objective [LLW20 (4)] of the library, its losses, its settings and its bound, written down once more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gamma, kv
from scipy.stats import chi2, norm

from convexkernels.arrays import Array
from convexkernels.backend import Backend
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.kernels import Spectral
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.kernels.measures import MEASURES
from convexkernels.spectral.inner import Moments, solve_inner
from convexkernels.spectral.learning import SpectralLearning, SpectralPoint
from convexkernels.spectral.losses import SCORE_LOSSES
from convexkernels.spectral.options import SETTINGS, setting_of
from convexkernels.spectral.penalties import FrobeniusNorm, TraceNorm
from convexkernels.spectral.selection import matched_trace_weight
from proofs_check.risk_formulas import ridge

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)
BACKEND = Backend("float64")

# [LLW20 Table 1]: stationary kernel, learned density, trace norm of W, norm of the features.
TABLE_1 = {
    "SK": (True, False, False, False),
    "NSK": (False, False, False, False),
    "SKL": (True, True, False, False),
    "NSKL": (False, True, False, False),
    "ASKL": (False, True, True, True),
}


def measure_settings(table: dict[str, tuple[bool, bool, bool, bool]], rng: Generator) -> Verdict:
    """The library has the five settings of [LLW20 Table 1], and no other."""
    settings = {name: setting_of(name) for name in SETTINGS}
    ours = {name: (s.stationary, s.learned, s.trace_norm, s.feature_norm) for name, s in settings.items()}
    wrong = sum(ours.get(name) != row for name, row in table.items()) + len(ours.keys() ^ table.keys())
    return Verdict(float(wrong), 0.0, 1, {"settings": str(ours)})


# ---- losses of scores


def loss_of(name: str, scores: Array, y: Array) -> float:
    """One point's loss: targets -1 or 1 for one score, the unit vector of its class for more, any for squares."""
    if name == "least_squares":
        return float(np.sum((scores - y) ** 2))
    if scores.size == 1:
        margin = float(y[0] * scores[0])
        return max(0.0, 1.0 - margin) if name == "hinge" else float(np.log1p(np.exp(-margin)))
    own = int(np.argmax(y))
    if name == "hinge":
        return max(0.0, 1.0 - float(scores[own]) + float(np.delete(scores, own).max()))
    return float(np.log(np.exp(scores).sum()) - scores[own])


def targets(rng: Generator, name: str, m: int, K: int) -> Array:
    if name == "least_squares":
        return rng.standard_normal((m, K))
    return rng.choice([-1.0, 1.0], (m, 1)) if K == 1 else np.eye(K)[rng.integers(0, K, m)]


def measure_score_loss(subject: tuple[str, float], rng: Generator) -> Verdict:
    """Mean losses, and slopes between the differences to both sides; `subject`: the loss and a factor of the slope."""
    name, factor = subject
    m, K = 6, int(rng.choice([1, 3]))
    F, Y = 1.5 * rng.standard_normal((m, K)), targets(rng, name, m, K)
    weights = rng.uniform(0.5, 2.0, m) if rng.integers(2) else None
    share = np.ones(m) / m if weights is None else weights / m

    def mean(G: Array) -> float:
        return float(share @ [loss_of(name, g, y) for g, y in zip(G, Y, strict=True)])

    value, slope = SCORE_LOSSES[name]().value_and_slope(F, Y, np, weights)
    direction, h = rng.standard_normal((m, K)), 1e-6
    along = factor * float(np.sum(slope * direction))
    right, left = (mean(F + h * direction) - mean(F)) / h, (mean(F) - mean(F - h * direction)) / h
    witness = {"F": F, "Y": Y, "value": value, "slope": slope, "differences": np.array([left, right])}
    outside = max(0.0, along - right, left - along)
    # Differences round by eps / h, and the curvature of smooth losses is on the safe side.
    return Verdict.worst(
        [Verdict(outside, 1e-8, 1, witness), Verdict(abs(float(value) - mean(F)), 1e-13 * (1.0 + mean(F)), 1, witness)]
    )


# ---- the objective


@dataclass(frozen=True, eq=False)
class Stated:
    """A problem of the library at a point, with everything that the formula needs."""

    problem: SpectralLearning
    point: SpectralPoint
    setting: str
    loss: str
    X: Array
    Y: Array
    weights: Array
    lam1: float
    lam2: float


def stated(rng: Generator, setting: str, loss: str) -> Stated:
    m, n, D, K = 8, 2, 4, int(rng.choice([1, 3]))
    X, Y = rng.uniform(-1.0, 1.0, (m, n)), targets(rng, loss, m, K)
    weights = rng.uniform(0.5, 2.0, m) if rng.integers(2) else None
    lam1, lam2 = (float(v) for v in np.exp(rng.uniform(-2.0, 1.0, 2)))
    problem = SpectralLearning.stated(
        X, Y, SCORE_LOSSES[loss](), SETTINGS[setting], lam1=lam1, lam2=lam2, backend=BACKEND, weights=weights
    )
    stationary = TABLE_1[setting][0]
    kind = str(rng.choice(["psi", "phi", "printed"]))
    drawn = SpectralMap.draw(n, D, stationary=stationary, feature_map=kind, rng=rng, backend=BACKEND)
    point = SpectralPoint(drawn, rng.standard_normal((drawn.width, K)), rng.standard_normal(K))
    return Stated(problem, point, setting, loss, X, Y, np.ones(m) if weights is None else weights, lam1, lam2)


def features_of(spectral_map: SpectralMap, omega: Array, X: Array) -> Array:
    """Maps psi and phi [LLW20 (6)]; where there is one band, it stands for two that are equal."""
    D, phase = spectral_map.D, spectral_map.phase
    bands = [omega, omega] if omega.shape[1] == D else [omega[:, :D], omega[:, D:]]
    if phase is None:
        cosines, sines = (sum(wave(X @ band) for band in bands) for wave in (np.cos, np.sin))
        return np.hstack([cosines, sines]) / np.sqrt(4.0 * D)
    shifts = [phase, phase] if phase.size == D else [phase[:D], phase[D:]]
    return np.asarray(sum(np.cos(X @ band + b) for band, b in zip(bands, shifts, strict=True)) / np.sqrt(2.0 * D))


def objective(case: Stated, W: Array, c: Array, omega: Array, *, smooth: bool = False, norms: float = 1.0) -> float:
    """[LLW20 (4)]: mean loss, ``lam1 |W|_*`` or ``lam1 |W|_F^2``, ``lam2 |phi(X)|_F^2`` where the setting says so."""
    P = features_of(case.point.map, omega, case.X)
    losses = [loss_of(case.loss, f, y) for f, y in zip(P @ W + c, case.Y, strict=True)]
    value = float(case.weights @ losses / case.weights.sum())
    _, _, trace_norm, feature_norm = TABLE_1[case.setting]
    if feature_norm:
        value += norms * case.lam2 * float(case.weights @ np.sum(P**2, axis=1))
    if smooth:
        return value
    singular = np.linalg.svd(W, compute_uv=False)
    return value + case.lam1 * float(singular.sum() if trace_norm else (singular**2).sum())


def measure_objective(subject: tuple[str, float], rng: Generator) -> Verdict:
    """The objective and its slopes along a random direction; `subject`: the setting and a factor of all slopes."""
    setting, factor = subject
    loss = str(rng.choice(["least_squares", "logistic"]))
    case = stated(rng, setting, loss)
    W, c, omega = (np.asarray(part) for part in (case.point.W, case.point.intercept, case.point.map.omega))
    value, *slopes = case.problem.evaluate(case.point)
    direct = objective(case, W, c, omega)
    directions = [rng.standard_normal(part.shape) for part in (W, c, omega)]

    def along(t: float) -> tuple[float, float]:
        moved = [part + t * d for part, d in zip((W, c, omega), directions, strict=True)]
        found = objective(case, *moved, smooth=True)
        return found, 8.0 * EPS * (1.0 + abs(found))

    slope, error = richardson_derivative(along, 0.1)
    claimed = factor * float(sum(np.sum(s * d) for s, d in zip(slopes, directions, strict=True)))
    witness = {"X": case.X, "Y": case.Y, "W": W, "omega": omega, "value": value, "direct": direct, "slope": slope}
    size = 1e-12 * (1.0 + abs(direct))
    return Verdict.worst(
        [Verdict(abs(value - direct), size, 1, witness), Verdict(abs(claimed - slope), 10.0 * error + size, 1, witness)]
    )


def measure_batches(subject: tuple[str, float], rng: Generator) -> Verdict:
    """What random batches estimate has the objective as its mean, and a part of the rows keeps the mean norm."""
    setting, norms = subject
    case = stated(rng, setting, str(rng.choice(["least_squares", "hinge", "logistic"])))
    W, c, omega = (np.asarray(part) for part in (case.point.W, case.point.intercept, case.point.map.omega))
    order = rng.permutation(8)
    total = 0.0
    for rows in (order[:2], order[2:5], order[5:]):
        X, Y = case.problem.X[rows], case.problem.Y[rows]
        value = case.problem.smooth(case.point, X, Y, case.problem.relative(rows), learned=False)[0]
        total += len(rows) / 8.0 * float(value)
    apart = [abs(total - objective(case, W, c, omega, smooth=True, norms=norms))]
    rows = np.sort(order[:3])
    weights = case.weights[rows]
    part = Stated(
        case.problem, case.point, setting, case.loss, case.X[rows], case.Y[rows], weights, case.lam1,
        norms * case.lam2 * float(case.weights.sum() / weights.sum()),
    )  # fmt: skip
    apart.append(abs(case.problem.on_rows(rows).objective(case.point) - objective(part, W, c, omega)))
    size = 1e-12 * (1.0 + abs(objective(case, W, c, omega)))
    return Verdict(max(apart), size, 1, {"X": case.X, "Y": case.Y, "order": order, "apart": np.array(apart)})


def ridge_regression(case: Stated, lam: float) -> tuple[Array, Array]:
    """W and the intercept of ridge regression on the features as drawn, from the normal equations."""
    omega, share = np.asarray(case.point.map.omega), case.weights / case.weights.sum()
    P = features_of(case.point.map, omega, case.X)
    centered, T = P - share @ P, case.Y - share @ case.Y
    normal = centered.T @ (share[:, None] * centered) + lam * np.eye(P.shape[1])
    W = np.linalg.solve(normal, centered.T @ (share[:, None] * T))
    return W, share @ (case.Y - P @ W)


def measure_bounds(price: float, rng: Generator) -> Verdict:
    """With frozen frequencies and |W|_F^2 the bounds enclose the optimum, and meet at the ridge solution.

    Also with the norm of the features in the objective, which is a constant then. `price` multiplies lam1 in that
    solution.
    """
    case = stated(rng, str(rng.choice(["SK", "NSK"])), "least_squares")
    W, c = ridge_regression(case, price * case.lam1)
    omega = np.asarray(case.point.map.omega)
    norm = float(case.weights @ np.sum(features_of(case.point.map, omega, case.X) ** 2, axis=1))
    best = objective(case, W, c, omega) + case.lam2 * norm
    problem = case.problem.with_weights(case.lam1, case.lam2)
    here: Any = problem.certificate(SpectralPoint(case.point.map, W, c))
    away: Any = problem.certificate(case.point)
    size = 1e-10 * (1.0 + best)
    crossing = max(0.0, away.lower - best, best - away.upper, abs(here.upper - best), here.upper - here.lower)
    return Verdict(crossing, size, 1, {"X": case.X, "Y": case.Y, "W": W, "bounds": np.array([here.lower, here.upper])})


def measure_ridge(price: float, rng: Generator) -> Verdict:
    """The library's W and intercept of SK and NSK are those of ridge regression with `price` times lam1.

    At that W the slope of the mean squared loss is ``-2 lam1 W``, too; and functions of the kernel of the features with
    the loss that is stated for it, beside the sum of the losses, have the same values.
    """
    case = stated(rng, str(rng.choice(["SK", "NSK"])), "least_squares")
    lam = price * case.lam1
    W, c = ridge_regression(case, lam)
    moments = Moments.of(case.point.map, case.problem)
    found = solve_inner(case.problem, moments)
    P, loss = (
        features_of(case.point.map, np.asarray(case.point.map.omega), case.X),
        case.problem.stated_at(found)["loss"],
    )
    duals = [ridge(P @ P.T, y, case.weights, loss.lam, loss.intercept) for y in case.Y.T]
    of_kernel = np.column_stack([P @ (P.T @ w) + b for w, b in duals])
    slope = np.asarray(moments.slope(W)) + 2.0 * lam * W
    parts = np.asarray(found.W) - W, np.asarray(found.intercept) - c, slope, of_kernel - P @ W - c
    size = 1e-10 * (1.0 + float(np.abs(W).max()))
    return Verdict(max(float(np.abs(part).max()) for part in parts), size, 1, {"X": case.X, "Y": case.Y, "W": W})


# ---- frequencies, and the step of the squared norm


def measure_variance(power: float, rng: Generator) -> Verdict:
    """Frequencies of every band have variance sigma^2; mean and chi-squared quantiles of one run in a million."""
    # Powers of a sigma near 1 could not be told apart.
    sigma, D = float(np.exp(rng.choice([-1.0, 1.0]) * rng.uniform(0.7, 1.4))), 4000
    kernel = Spectral.random(2, D, sigma=sigma, feature_map=str(rng.choice(["psi", "phi"])), random_state=rng)
    alone = Spectral.random(2, D, sigma=sigma, stationary=True, random_state=rng)
    drawn = SpectralMap.draw(2, D, stationary=False, feature_map="psi", rng=rng, backend=BACKEND).scaled(sigma)
    low, high = (float(chi2.ppf(q, 2 * D) / (2 * D)) for q in (1e-7, 1.0 - 1e-7))
    outside = []
    for omega in (kernel.omega, kernel.omega2, alone.omega, drawn.omega[:, :D], drawn.omega[:, D:]):
        ratio = float(np.mean(np.asarray(omega) ** 2)) / sigma**power
        outside.append(max(0.0, ratio - high, low - ratio))
    return Verdict(max(outside), 0.0, 1, {"sigma": sigma, "outside": np.array(outside)})


def fourier_transforms(d: Array) -> dict[str, float]:
    """E cos(w'd) for w of scale 1: multivariate t by its Bessel function, independent Cauchy numbers as a product."""
    r = float(np.linalg.norm(d))
    found = {"gaussian": float(np.exp(-r * r / 2.0)), "cauchy": float(np.prod(np.exp(-np.abs(d))))}
    for degrees in (1, 3, 5):
        nu, t = 0.5 * degrees, degrees**0.5 * r
        found[f"student-{degrees}"] = float(2.0 ** (1.0 - nu) / gamma(nu) * t**nu * kv(nu, t))
    return found


def measure_measures(stretch: float, rng: Generator) -> Verdict:
    """Kernels of drawn frequencies and the kernels named for them, against Fourier transforms of their measures.

    Both bands of frequencies; the tolerance of their means is the quantile a correct claim exceeds once in a million
    runs, and kernels have to agree to rounding. `stretch` multiplies distances.
    """
    sigma, D, origin = float(rng.uniform(0.5, 2.0)), 20_000, np.zeros((1, 3))
    x = rng.standard_normal((1, 3))
    x *= rng.uniform(0.4, 1.0) / (sigma * np.linalg.norm(x))
    near = fourier_transforms(stretch * sigma * x[0])
    far, verdicts = fourier_transforms(2.0 * stretch * sigma * x[0]), []
    for name, measure in MEASURES.items():
        k, options = near[name], dict[str, Any](sigma=sigma, measure=name, random_state=rng)
        pairs, alone = Spectral.random(3, D, **options), Spectral.random(3, D, stationary=True, **options)
        error = float(norm.isf(1e-7)) * float(np.sqrt(max((1.0 + far[name]) / 2.0 - k * k, 0.0) / D))
        means = [float(np.cos(x @ omega).mean()) for omega in (pairs.omega, pairs.omega2)]
        sampled = max(abs(value - k) for value in (*means, float(alone(x, origin)[0, 0])))
        witness = {"measure": name, "sigma": sigma, "x": x, "kernel": k}
        verdicts.append(Verdict(sampled, error, 1, witness))
        verdicts.append(Verdict(abs(float(measure.kernel(sigma)(x, origin)[0, 0]) - k), 1e-13, 1, witness))
    return Verdict.worst(verdicts)


def measure_matched_weight(factor: float, rng: Generator) -> Verdict:
    """lam1 with which both penalties have the same slope along a ridge solution W, at W."""
    W, lam = rng.standard_normal((5, 3)), float(rng.uniform(0.1, 2.0))
    lam1 = factor * matched_trace_weight(lam, W)
    singular = np.linalg.svd(W, compute_uv=False)
    slopes = lam1 * float(singular.sum()), 2.0 * lam * float(np.sum(W**2))
    return Verdict(abs(slopes[0] - slopes[1]), 1e-13 * slopes[1], 1, {"W": W, "lam": lam})


def measure_as_ridge(factor: float, rng: Generator) -> Verdict:
    """The ridge of a penalty: at t = 1 the slope of ``ridge |t W|_F^2`` is that of the penalty of t W.

    Both are polynomials in t of degree 2 at most, so that central differences are their slopes. The trace norm is the
    trace of the root of W'W.
    """
    W, weight, h = rng.standard_normal((5, 3)), float(rng.uniform(0.1, 2.0)), 0.25
    verdicts = []
    for penalty, value in (
        (TraceNorm(weight), lambda V: weight * float(np.sqrt(np.linalg.eigvalsh(V.T @ V)).sum())),
        (FrobeniusNorm(weight), lambda V: weight * float(np.sum(V**2))),
    ):
        slope = (value((1.0 + h) * W) - value((1.0 - h) * W)) / (2.0 * h)
        ridge = factor * penalty.as_ridge(W)
        found = ridge * float(np.sum(W**2)) * ((1.0 + h) ** 2 - (1.0 - h) ** 2) / (2.0 * h)
        verdicts.append(Verdict(abs(found - slope), 1e-13 * abs(slope), 1, {"W": W, "weight": weight, "ridge": ridge}))
    return Verdict.worst(verdicts)


def measure_frobenius_step(factor: float, rng: Generator) -> Verdict:
    """The proximal step of ``eta |W|_F^2``: the slope of ``|V - W|_F^2 / 2 + eta |V|_F^2`` vanishes there."""
    W, weight, step = rng.standard_normal((5, 3)), float(rng.uniform(0.1, 2.0)), float(rng.uniform(0.1, 2.0))
    V = FrobeniusNorm(weight).proximal(W, step, BACKEND)
    slope = V - W + 2.0 * factor * step * weight * V
    return Verdict(float(np.abs(slope).max()), 1e-14 * float(np.abs(W).max()), 1, {"W": W, "V": V})
