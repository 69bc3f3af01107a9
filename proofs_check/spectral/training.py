"""What the library does with its spectral objective: a step of training, stationarity, lower bounds of a loss."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import binom, norm

from convexkernels.arrays import Array
from convexkernels.backend import Backend
from convexkernels.checking import Verdict, richardson_derivative
from convexkernels.clock import Clock
from convexkernels.kernels.frequencies import SpectralMap
from convexkernels.spectral.cross_validation import Candidate, FinalWeights, Fold, choose_candidate
from convexkernels.spectral.losses import SCORE_LOSSES
from convexkernels.spectral.options import Hyperparameters, Training
from convexkernels.spectral.preparation import Preparation
from convexkernels.spectral.training import TrainingRun
from proofs_check.spectral.objective import (
    EPS,
    TABLE_1,
    Stated,
    loss_of,
    objective,
    ridge_regression,
    stated,
    targets,
)

Generator = np.random.Generator


def measure_dual_point(more: float, rng: Generator) -> Verdict:
    """The dual point of every loss sums to 0, and its plane is below the mean loss, which it touches.

    It touches smooth losses at the scores, moved by the best constants, and the margin loss of two classes where all
    margins are met; for more classes the plane of the margin loss is 0. `more` is added to the plane.
    """
    verdicts = []
    for name, make in SCORE_LOSSES.items():
        for K in (1, 3):
            F, Y, weights = 1.5 * rng.standard_normal((12, K)), targets(rng, name, 12, K), rng.uniform(0.5, 2.0, 12)
            if K == 1 and name != "least_squares":  # one side heavier than the other
                Y = np.where(np.arange(12) < 4, 1.0, -1.0)[:, None]
            weights /= weights.mean()
            constant, S = make().dual_point(F, Y, weights)

            def above(G: Array, name: str = name, Y: Array = Y, S: Array = S, share: Array = weights / 12.0) -> float:
                return float(share @ [loss_of(name, g, y) for g, y in zip(G, Y, strict=True)]) - float(np.vdot(S, G))

            shifts = [F + b for b in rng.standard_normal((20, K))] + [
                np.tile(b, (12, 1)) for b in rng.normal(size=(20, K))
            ]
            ends = [*shifts, *(rng.standard_normal((12, K)) for _ in range(5)), Y]
            if name != "hinge":
                ends.append(F + make().best_shift(F, Y, weights))  # type: ignore[attr-defined]
            least, size = min(map(above, ends)), 1e-11
            witness = {"loss": name, "F": F, "Y": Y, "S": S, "constant": constant, "least": least}
            touches = not (name == "hinge" and K > 1)
            verdicts += [
                Verdict(max(0.0, constant + more - least), size, 1, witness),
                Verdict(max(0.0, least - constant) if touches else 0.0, 1e-9, 1, witness),
                Verdict(float(np.abs(S.sum(axis=0)).max()), size, 1, witness),
            ]
            if name == "least_squares":  # whose least value is known exactly: no rounding makes the plane too high
                excess = Fraction(constant) + Fraction(more) - least_difference(Y, S, weights)
                verdicts.append(Verdict(float(max(excess, Fraction(0))), 0.0, 1, witness))
    return Verdict.worst(verdicts)


def least_difference(Y: Array, S: Array, weights: Array) -> Fraction:
    """The least of ``mean of weights |g - y|^2 - <S, G>`` over scores G, which is at ``g = y + s / (2 share)``."""
    total = Fraction(0)
    for row, slopes, weight in zip(Y.tolist(), S.tolist(), weights.tolist(), strict=True):
        share = Fraction(weight) / len(Y)
        total -= sum(
            Fraction(s) * Fraction(y) + Fraction(s) ** 2 / (4 * share) for y, s in zip(row, slopes, strict=True)
        )
    return total


def gradient_in(W: Array, case: Stated) -> Array:
    """Of (4) with ``|W|_F^2``, entry by entry by differences."""
    c, omega = np.asarray(case.point.intercept), np.asarray(case.point.map.omega)
    slopes = np.zeros_like(W)
    for index in np.ndindex(*W.shape):
        unit = np.zeros_like(W)
        unit[index] = 1.0

        def along(t: float, unit: Array = unit) -> tuple[float, float]:
            value = objective(case, W + t * unit, c, omega)
            return value, 8.0 * EPS * (1.0 + abs(value))

        slopes[index] = richardson_derivative(along, 0.1)[0]
    return slopes


def shrunk(W: Array, threshold: float) -> Array:
    """The proximal step of the trace norm."""
    U, sigma, V = np.linalg.svd(W, full_matrices=False)
    return np.asarray((U * np.maximum(sigma - threshold, 0.0)) @ V)


def measure_step(factor: float, rng: Generator) -> Verdict:
    """The first step in W with ``|W|_F^2`` is that of Adam for the gradient of (4), the penalty's included.

    Its first averages are a tenth of the gradient and a thousandth of its square, and are divided by these shares: a
    step does not tell the size of an entry, but the average does. `factor` multiplies the gradient.
    """
    case = stated(rng, "NSKL", str(rng.choice(["least_squares", "logistic"])))
    W = np.array(case.point.W)
    gradient = factor * gradient_in(W, case)
    run: Any = TrainingRun(case.problem, case.point.copy(), Training(dtype="float64").settled(8), rng)
    run.step(np.arange(8), 0.0)
    expected = W - gradient / (np.abs(gradient) + 1e-8) / np.sqrt(case.point.map.width)
    apart = [np.abs(10.0 * run._moments["W"].mean - gradient).max(), np.abs(run.point.W - expected).max()]
    size = 1e-7 * (1.0 + float(np.abs(gradient).max()))
    witness = {"X": case.X, "Y": case.Y, "W": W, "gradient": gradient, "arrived": np.asarray(run.point.W)}
    return Verdict(float(max(apart)), size, 1, witness)


def measure_proximal_step(factor: float, rng: Generator) -> Verdict:
    """The first step in W with ``|W|_*``: by one multiple of the gradient of the smooth part, and its proximal step.

    The multiple is the length of a step over the root mean square of the gradient's entries: minimizers of (4) in W
    stay where they are. `factor` multiplies the multiple of the proximal step.
    """
    case = stated(rng, "ASKL", str(rng.choice(["least_squares", "logistic"])))
    W, gradient = np.array(case.point.W), np.asarray(case.problem.evaluate(case.point)[1])
    multiple = 1.0 / np.sqrt(case.point.map.width) / (np.sqrt(np.mean(gradient**2)) + 1e-8)
    lam1 = weight_that_leaves(W - multiple * gradient, multiple, rng)
    problem = case.problem.with_weights(lam1, case.lam2)
    run: Any = TrainingRun(problem, case.point.copy(), Training(dtype="float64").settled(8), rng)
    run.step(np.arange(8), 0.0)
    expected = shrunk(W - multiple * gradient, factor * multiple * lam1)
    size = 1e-9 * (1.0 + float(np.abs(W).max()))
    witness = {"X": case.X, "Y": case.Y, "W": W, "gradient": gradient, "arrived": np.asarray(run.point.W)}
    return Verdict(float(np.abs(run.point.W - expected).max()), size, 1, witness)


def weight_that_leaves(W: Array, multiple: float, rng: Generator) -> float:
    """A weight of the trace norm with which the proximal step of that multiple is neither 0 nor W itself."""
    return float(rng.uniform(0.1, 0.9) * np.linalg.norm(W, 2) / multiple)


def measure_share(factor: float, rng: Generator) -> Verdict:
    """Weights on a fold are those for all rows times the rows of all over those of the fold, as beside sums of losses.

    By the first step in W for ASKL, whose proximal step has lam1 times that share, and by the ridge of an exact solve.
    `factor` multiplies the share.
    """
    case, share, sigma = (
        stated(rng, "ASKL", "least_squares"),
        float(rng.uniform(1.2, 3.0)),
        float(rng.uniform(0.5, 2.0)),
    )
    W, arrived = np.array(case.point.W), []

    def validate(point: Any) -> float:
        arrived.append(np.array(point.W))
        return 0.0

    shared = case.problem.with_weights(0.0, share * case.lam2)
    gradient = np.asarray(shared.evaluate(case.point)[1])
    multiple = 1.0 / np.sqrt(case.point.map.width) / (np.sqrt(np.mean(gradient**2)) + 1e-8)
    lam1 = weight_that_leaves(W - multiple * gradient, share * multiple, rng)
    problem = case.problem.with_weights(1.0, 1.0)  # any: candidates bring their own
    fold = Fold(problem, {sigma: case.point.copy()}, validate, share)
    training = Training(dtype="float64", max_epochs=1).settled(8)
    choose_candidate([fold], [Candidate(sigma, lam1, case.lam2)], training, rng=rng)
    expected = shrunk(W - multiple * gradient, factor * share * multiple * lam1)
    apart = float(np.abs(arrived[-1] - expected).max())
    last, ridge = FinalWeights((case.lam1,), are_ridges=True), ridge_regression(case, factor * share * case.lam1)[0]
    untrained = replace(training, max_epochs=0)
    choose_candidate([fold], [Candidate(sigma, lam1, case.lam2)], untrained, lambda _: last, rng=rng)
    apart = max(apart, float(np.abs(arrived[-1] - ridge).max()))
    witness = {"X": case.X, "Y": case.Y, "W": W, "share": share, "arrived": arrived[-1]}
    step = Verdict(apart, 1e-9 * (1.0 + float(np.abs(W).max())), 1, witness)
    return Verdict.worst([step, folds_of_rows(factor, rng)])


def folds_of_rows(factor: float, rng: Generator) -> Verdict:
    """Shares and scores on folds of rows with weights, which count rows: minus mean losses, or shares of hits.

    The default of lam2 is a thousandth over all of the weight. `factor` multiplies shares.
    """
    case, worst = stated(rng, "ASKL", "least_squares"), 0.0
    codes = rng.integers(0, max(2, case.Y.shape[1]), 8)
    settings: dict[str, Any] = {"n_components": 4, "sigma": 1.0, "training": Training(dtype="float64", folds=3)}
    preparation = Preparation(Hyperparameters(**settings), case.problem, rng, Clock())
    F = np.asarray(case.point.scores(case.X))
    found = (F[:, 0] > 0.0).astype(int) if F.shape[1] == 1 else F.argmax(axis=1)
    for known, worth in ((None, -np.sum((F - case.Y) ** 2, axis=1)), (codes, (found == codes).astype(float))):
        for fold in preparation._folds(np.arange(8), known):
            inside = (case.X[:, None] == np.asarray(fold.problem.X)).all(axis=2).any(axis=1)
            rest, total = case.weights[~inside], float(case.weights[inside].sum())
            worst = max(worst, abs(fold.share * total / float(case.weights.sum()) - factor))
            worst = max(worst, abs(fold.validate(case.point) - float(rest @ worth[~inside] / rest.sum())))
    [candidate] = preparation.candidates(case.point)
    worst = max(worst, abs(candidate.lam2 * float(case.weights.sum()) / 1e-3 - 1.0))
    return Verdict(worst, 1e-11, 1, {"X": case.X, "Y": case.Y, "weights": case.weights, "codes": codes})


def measure_stationarity(subject: tuple[str, float], rng: Generator) -> Verdict:
    """The residual of a point is the norm of the gradient of (4), for the trace norm with the proximal step in W.

    Slopes of the smooth part are those of the objective's claim; `subject`: the setting and a factor of lam1.
    """
    setting, factor = subject
    case = stated(rng, setting, str(rng.choice(["least_squares", "logistic"])))
    W, lam1 = np.asarray(case.point.W), factor * case.lam1
    _, slope, *others = case.problem.evaluate(case.point)
    in_W = W - shrunk(W - slope, lam1) if TABLE_1[setting][2] else slope + 2.0 * lam1 * W
    residual = float(np.sqrt(sum(np.sum(np.asarray(part) ** 2) for part in (in_W, *others))))
    found: Any = case.problem.certificate(case.point)
    witness = {"X": case.X, "Y": case.Y, "W": W, "residual": found.residual, "direct": residual}
    return Verdict(abs(found.residual - residual), 1e-9 * (1.0 + residual), 1, witness)


def measure_size(factor: float, rng: Generator) -> Verdict:
    """The size of frequencies is their standard deviation where they are normal, whatever they are said to be from.

    Quantiles of a normal distribution in every feature, of other deviations; by squares for the Gaussian measure, by
    medians for those with long tails. Where features have factors, steps of each are that times its factor, and times
    sigma, wherever training has moved frequencies. `factor` multiplies the deviations.
    """
    D, deviations, factors, sigma = 20_001, rng.uniform(0.2, 5.0, 3), 10.0 ** rng.uniform(-6.0, 6.0, 3), 0.3
    quantiles = norm.ppf((np.arange(D) + 0.5) / D)
    omega = np.array([s * rng.permutation(quantiles) for s in deviations])
    expected = factor * float(np.sqrt(np.mean(deviations**2)))
    verdicts = []
    for measure in ("gaussian", "student-1", "student-3", "student-5", "cauchy"):
        drawn = SpectralMap.draw(
            3, D, stationary=True, feature_map="psi", rng=rng, backend=Backend("float64"), measure=measure
        )
        there = drawn.with_omega(omega)
        weighed = there.weighed(factors).scaled(sigma)
        moved = weighed.with_omega(weighed.omega + rng.permuted(weighed.omega))
        found = np.append(moved.reach()[:, 0] / (sigma * factors), there.reach())
        error = float(np.abs(found / expected - 1.0).max())
        verdicts.append(Verdict(error, 2e-4, 1, {"measure": measure, "deviations": deviations}))
    return Verdict.worst(verdicts)


def measure_noise(factor: float, rng: Generator) -> Verdict:
    """A share p of n hits is as uncertain as its distribution says: n independent rows, each a hit with probability p.

    The last point is kept where it is worse than the best one by no more than that. `factor` multiplies it.
    """
    case, n, p = stated(rng, "NSKL", "least_squares"), int(rng.integers(10, 400)), float(rng.uniform(0.05, 1.0))
    run: Any = TrainingRun(case.problem, case.point.copy(), Training(dtype="float64").settled(8), rng, n_hits=n)
    run.best_score = p
    hits = np.arange(n + 1)
    deviation = float(np.sqrt(binom.pmf(hits, n, p) @ (hits / n - p) ** 2))
    return Verdict(abs(run._noise() - factor * deviation), 1e-10, 1, {"n": np.array(n), "p": np.array(p)})
