"""What estimators say beside predictions: probabilities, intervals, relevance of features, dimensions of a kernel."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

from convexkernels.arrays import Array
from convexkernels.checking import Verdict
from convexkernels.estimators.intervals import as_unseen, conformal, margin_around, margins, widened
from convexkernels.estimators.outliers import usual_range, usual_share, usual_weights, without_outliers
from convexkernels.estimators.probabilities import Sigmoid, shares_of
from convexkernels.estimators.relevance import effective_rank, relevance
from convexkernels.losses.epsilon_insensitive import deviation_of
from convexkernels.problems.decision_function import differences
from proofs_check.claim import Claim

Generator = np.random.Generator
EPS = float(np.finfo(np.float64).eps)


# ---- probabilities


def linked(f: float, knots: Array, slopes: Array) -> float:
    """The integral from 0 to f of a slope that is constant between the knots, piece by piece."""
    low, high = min(f, 0.0), max(f, 0.0)
    total = 0.0
    for slope, (a, b) in zip(slopes, pairwise([-np.inf, *knots.tolist(), np.inf]), strict=True):
        total += slope * max(0.0, min(b, high) - max(a, low))
    return total if f > 0.0 else -total


def chances(scores: Array) -> Array:
    """Probabilities of one point, from the score of the second of two classes or those of all."""
    both = np.append(0.0, scores) if scores.size == 1 else scores
    return np.asarray(np.exp(both) / np.exp(both).sum())


def measure_link(factor: float, rng: Generator) -> Verdict:
    """``P(class) ~ exp(g(f))``, the slope of g being constant between knots; `factor` multiplies slopes."""
    knots = np.sort(np.append(rng.normal(0.0, 1.0, int(rng.integers(0, 4))), 0.0))
    slopes, K = rng.uniform(0.2, 2.0, len(knots) + 1), int(rng.choice([1, 3]))
    F = 1.5 * rng.standard_normal((8, K))
    direct = np.array([chances(np.array([linked(f, knots, factor * slopes) for f in row])) for row in F.tolist()])
    apart = float(np.abs(Sigmoid(knots, slopes)(F) - direct).max())
    return Verdict(apart, 1e-13, 1, {"F": F, "knots": knots, "slopes": slopes})


def measure_likeliest_link(errors: float, rng: Generator) -> Verdict:
    """The two slopes of a link are the likeliest ones, against an optimizer that knows no derivatives.

    Of n rows of a class one counts as two `errors` over the number of classes, of ``n + 2`` rows, which the others
    share; values are in units of their root mean square, and the deviations of both slopes from their mean have a
    normal prior of weight 1, twice.
    """
    K = int(rng.choice([2, 3]))
    codes, weights = rng.permutation(np.arange(24) % K), rng.uniform(0.5, 2.0, 24)
    F = np.where(codes == 1, 1.0, -1.0)[:, None] if K == 2 else 2.0 * np.eye(K)[codes]
    F = float(rng.uniform(0.3, 3.0)) * (F + 1.5 * rng.standard_normal(F.shape))
    unit = float(np.sqrt((weights @ F**2 / weights.sum()).mean()))
    targets = np.zeros((24, K))
    for i, code in enumerate(codes.tolist()):
        doubt = 2.0 * errors / K / (weights[codes == code].sum() + 2.0)
        targets[i] = doubt / (K - 1)
        targets[i, code] = 1.0 - doubt

    def cost(slopes: Array) -> float:
        there = [chances(np.array([linked(f / unit, np.zeros(1), slopes) for f in row])) for row in F.tolist()]
        fit = -float(weights @ (targets * np.log(there)).sum(axis=1))
        return fit + float(((slopes - slopes.mean()) ** 2).sum())

    start = np.array(Sigmoid.of(F, codes, weights).slopes) * unit
    best = minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12, "maxiter": 400}).x
    witness = {"F": F, "codes": codes, "weights": weights, "slopes": start, "likeliest": best}
    return Verdict(float(np.abs(start - best).max()), 2e-3 * float(best.max()), 1, witness)


def shared(P: Array, predicted: Array, shares: Array) -> Array:
    """Rows whose rest goes to the other classes as ``P shares``, each at most just below the predicted one."""
    rows = []
    for p, top in zip(P, predicted, strict=True):
        others = np.where(np.arange(p.size) == top, 0.0, p * shares)
        rest = float(np.delete(p, top).sum())
        row = np.minimum(others * rest / others.sum(), (1.0 - 1e-6) * p[top])
        row[top] = p[top]
        rows.append(row / row.sum())
    return np.array(rows)


def measure_shares(rows: float, rng: Generator) -> Verdict:
    """Shares are multiplied five times by what is found over what is told of a class where another is predicted.

    Ten `rows` more are found and told each time. With them the predicted class stays the likeliest one. Large weights
    are no numbers of rows.
    """
    m, K = 40, int(rng.integers(3, 6))
    F, knots, slopes = rng.standard_normal((m, K)), np.zeros(1), rng.uniform(0.2, 2.0, 2)
    codes, weights = rng.integers(0, K, m), rng.uniform(0.5, 0.9, m) * rng.choice([1.0, 50.0])
    P, predicted = Sigmoid(knots, slopes)(F), F.argmax(axis=1)
    shares, given = np.ones(K), weights
    weights = given / max(1.0, float(np.mean(given)))
    for _ in range(5):
        there = shared(P, predicted, shares)
        for k in range(K):
            other = predicted != k
            found, told = float(weights[other & (codes == k)].sum()), float(weights[other] @ there[other, k])
            shares[k] *= (found + 10.0 * rows) / (told + 10.0 * rows)
    library = shares_of(P, predicted, codes, given)
    link = Sigmoid(knots, slopes, library)(F)
    apart = np.abs(library / shares - 1.0).max() + np.abs(link - shared(P, predicted, shares)).max()
    wrong = float((link.argmax(axis=1) != predicted).any())
    return Verdict(float(apart) + wrong, 1e-12, 1, {"F": F, "codes": codes, "weights": weights, "shares": library})


def measure_deviation(factor: float, rng: Generator) -> Verdict:
    """The deviation of errors: by squares, or by the median where the former is more than four times the latter.

    The median size of normal errors is .67449 deviations; not below a hundredth of that by squares. `factor` multiplies
    the four.
    """
    m, size, ratio = 31, float(rng.uniform(0.1, 10.0)), float(rng.choice([0.0, 3.9, 4.1, 300.0]))
    weights, signs = rng.integers(1, 4, m).astype(np.float64), rng.choice([-1.0, 1.0], m)
    errors = np.ones(m) if ratio else np.zeros(m)  # their median size, but for the first one
    counted = np.repeat(np.arange(m), weights.astype(int))
    middle = errors[0] / 0.6744897501960817
    target = max(ratio * middle, 1.0) ** 2 * len(counted)
    errors[0] = np.sqrt((target - float((errors[counted[counted > 0]] ** 2).sum())) / weights[0])
    by_squares = float(np.sqrt(np.mean(errors[counted] ** 2)))
    expected = by_squares if by_squares <= 4.0 * factor * middle else max(middle, 0.01 * by_squares)
    found = deviation_of(size * (signs * errors)[None], weights) / size
    return Verdict(abs(found / expected - 1.0), 1e-12, 1, {"errors": errors, "weights": weights})


def measure_usual_range(factor: float, rng: Generator) -> Verdict:
    """Four deviations around the median, as nine sizes of ten say, where squares say more than twice as much.

    Squares then see rows without them, of this output on [-1, 1], and other outputs as they are; what is outside has no
    weight, and makes gaps as much finer as it makes sums of sizes larger. One or two are outliers ten times as far as
    all others. Not so where rows with large targets are neighbors or in a corner, of which chance has hardly any,
    beyond those that are, nor where rows of one place are only sorted by targets. `factor` multiplies the four.
    """
    m, ratio, tops = 60, float(rng.choice([1.9, 2.1, 50.0])), np.array([10, 30, 50])
    weights, y = rng.integers(1, 4, m).astype(np.float64), rng.uniform(-1.0, 1.0, m)
    y = y if rng.integers(2) else np.where(np.abs(y) < 0.75, 0.1 * y, np.sign(y))  # nine of ten, or squares, say more
    y[tops], weights[tops] = 1e3, 1.0  # they stay the largest, whatever they are in the end
    counted = np.sort(np.repeat(y, weights.astype(int)))
    n = len(counted)
    middle = counted[-(-n // 2) - 1]
    nine = np.sort(np.abs(counted - middle))[int(np.ceil(0.9 * n - 1e-9)) - 1] / 1.6448536269514722
    others = np.delete(np.arange(m), tops)
    rest = float(weights[others] @ (y[others] - middle) ** 2)
    base = max(nine, np.sqrt(rest / (n - 3)))
    y[tops] = middle + np.sqrt((n * (ratio * base) ** 2 - rest) / 3)
    Y = np.vstack([y, rng.uniform(-1.0, 1.0, m)])
    X = np.arange(60.0)[:, None]
    low, high = usual_range(X, Y, weights)
    rows, found, unit = without_outliers(X, Y / max(1.0, float(np.abs(y).max())), weights)
    has = ratio > 2.0
    apart = float(np.isfinite(low[1, 0])) + float(np.isfinite(low[0, 0]) != has)
    far = np.where(np.arange(40) < 3, 50.0, rng.uniform(-1.0, 1.0, 40))
    apart_places = np.r_[5.0, 20.0, 35.0, np.delete(np.arange(40.0), [5, 20, 35])]
    told, untold = (usual_range(x[:, None], far[None], np.ones(40))[0] for x in (np.arange(40.0), apart_places))
    apart += float(np.isfinite(told).any()) + float(np.isinf(untold).any())
    both = np.where(np.arange(60) < 5, 50.0, rng.uniform(-1.0, 1.0, 60))
    both[30] = 1e4
    middle_of_60 = np.sort(both)[29]
    reach = usual_range(np.arange(60.0)[:, None], both[None], np.ones(60))[1][0, 0] - middle_of_60
    apart += abs(reach / (np.sqrt(2.0) * (50.0 - middle_of_60)) - 1.0)
    corner = rng.uniform(-1.0, 1.0, (200, 8))
    sums = corner.sum(axis=1)
    large = np.where(sums >= np.sort(sums)[-8], 50.0, sums)
    apart += float(np.isfinite(usual_range(corner, large[None], np.ones(200))).any())
    few = rng.uniform(-1.0, 1.0, 60) + np.where(np.isin(np.arange(60), [7, 33]), 1.0, 0.0) * rng.choice([8.0, 35.0])
    apart += float(np.isfinite(usual_range(X, few[None], np.ones(60))[0]).any() != (few.max() > 25.0))
    alike, in_order = np.repeat(np.arange(4.0), 20)[:, None], np.where(np.arange(80) % 20 < 18, 0.01, 50.0)
    in_order *= rng.uniform(0.9, 1.1, 80)
    apart += float(np.isinf(usual_range(alike, in_order[None], np.ones(80))[0]).any())
    if has:
        size = factor * 4.0 * nine
        apart += abs(high[0, 0] - middle - size) / size + abs(middle - low[0, 0] - size) / size
        inside = np.abs(y - middle) <= size
        apart += float((usual_weights(X, Y, weights) != np.vstack([np.where(inside, weights, 0.0), weights])).any())
        ends, within, whole = (low.T, high.T), 0.0, 0.0
        for own, a, b in zip(Y.tolist(), low.ravel(), high.ravel(), strict=True):
            usual = np.array([min(max(t, a), b) for t in own])
            sizes = [float(weights @ np.abs(some - weights @ usual / n)) for some in (usual, np.array(own))]
            within, whole = within + 1.0, whole + sizes[1] / sizes[0]
        apart += abs(usual_share(Y.T, ends, weights) * whole / within - 1.0)
        ends = y[inside].min(), y[inside].max()
        t = (2.0 * y[inside] - sum(ends)) / (ends[1] - ends[0])
        apart += float((rows != np.flatnonzero(inside)).any())
        apart += np.abs(found[0] - t).max() + abs(unit * np.abs(y).max() * 2.0 / (ends[1] - ends[0]) - 1.0)
    return Verdict(float(apart), 1e-9, 1, {"Y": Y, "weights": weights})


# ---- intervals


def exceeded(found: int, tail: float, n: int, witness: dict[str, Array], fewer: int = 1) -> Verdict:
    """Of n cases as many as may be, and not so many fewer than that."""
    return Verdict(max(found - tail * n, (tail * n - fewer) - found, 0.0), 1e-9 * n, 1, witness)


def measure_conformal(more: float, rng: Generator) -> Verdict:
    """Of n exchangeable scores, each in turn the new one, a share ``1 - coverage`` is above, on either side half of it.

    `more` is added to the coverage that is asked for.
    """
    n, coverage = int(rng.integers(50, 80)), float(rng.uniform(0.6, 0.9))
    scores, weight = rng.standard_normal(n), float(rng.uniform(0.3, 3.0))
    above, outside = 0, np.zeros(2, dtype=int)
    for i in range(n):
        rest = np.delete(scores, i)
        weights = np.full(n - 1, weight)
        above += int(scores[i] > conformal(rest, weights, coverage + more))
        ends = margins(rest, weights, coverage + more)
        outside += [int(scores[i] < ends[0]), int(scores[i] > ends[1])]
    witness = {"scores": scores, "coverage": np.array(coverage)}
    cases = [(above, 1.0 - coverage), *((int(count), 0.5 * (1.0 - coverage)) for count in outside)]
    counted = [exceeded(count, tail, n, witness) for count, tail in cases]
    return Verdict.worst([*counted, weighed_quantile(scores, rng.uniform(0.3, 3.0, n), coverage, more)])


def weighed_quantile(scores: Array, weights: Array, coverage: float, more: float) -> Verdict:
    """The least score up to which rows weigh enough, of all of them and one of mean weight; `more` as above."""
    found, whole = float(conformal(scores, weights, coverage + more)), float(weights.sum() + weights.mean())
    reached = [s for s in np.sort(scores).tolist() if weights[scores <= s].sum() >= coverage * whole]
    return Verdict(abs(found - reached[0]), 0.0, 1, {"scores": scores, "weights": weights})


def measure_margin(more: float, rng: Generator) -> Verdict:
    """Around two quantiles, which may cross, a margin holds a share of new targets, every row in turn being new.

    Where the margin is negative and nothing is left, the interval is the point in the middle. Targets that many rows
    share are held although functions are right to a tolerance only. `more` is added to the coverage.
    """
    n, coverage = int(rng.integers(50, 80)), float(rng.uniform(0.5, 0.9))
    X, y = rng.standard_normal(n), rng.standard_normal(n)
    first, second = np.sin(X) - rng.uniform(0.0, 2.5), np.sin(X) + rng.uniform(-0.2, 2.5, n)
    held = 0
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        margin = margin_around(first[rest], second[rest], y[rest], np.ones(n - 1), coverage + more, 1.0)
        held += int(max(min(first[i], second[i]) - y[i], y[i] - max(first[i], second[i])) <= margin)
    width, ends = float(rng.uniform(-1.5, 0.5)), []
    for a, b in zip(first, second, strict=True):
        left, right = min(a, b) - width, max(a, b) + width
        ends.append([left, right] if left <= right else [(a + b) / 2.0] * 2)
    apart = float(np.abs(widened(first, second, np.array(width)) - ends).max())
    witness = {"first": first, "second": second, "y": y}
    # A little of the spread of the targets is added: a tie more may be held.
    counted = exceeded(n - held, 1.0 - coverage, n, witness, fewer=2)
    points = Verdict(apart, 8.0 * EPS * (1.0 + float(np.abs(ends).max())), 1, witness)
    return Verdict.worst([counted, points, shared_edge(rng)])


def shared_edge(rng: Generator) -> Verdict:
    """A target of eight rows in ten, at the edge of functions that are right to 1e-4 of the spread, is held or not.

    The tenth that is farther away by 1e-3 of it is not held.
    """
    spread, n = float(np.exp(rng.uniform(-5.0, 5.0))), 50
    inexact = 1e-4 * spread * rng.uniform(-1.0, 1.0, n)
    far = np.select([np.arange(n) < 5, np.arange(n) < 45], [-1.0, 0.0], 1e-3)
    y, low = spread * far, -2.0 * spread - inexact
    margin = float(margin_around(low, inexact, y, np.ones(n), 0.5, spread))
    held = y - inexact <= margin
    wrong = (held != (far <= 0.0)).sum()
    return Verdict(float(wrong), 0.0, 1, {"inexact": inexact, "margin": np.array(margin), "spread": np.array(spread)})


def measure_unseen(factor: float, rng: Generator) -> Verdict:
    """Residuals of seen rows are raised to the level of the others: by the least ratio of the quantiles .5, .8, .9.

    Only where others are clearly larger: where chance makes so many pairs in which the other one is larger in less than
    one case of a hundred. Of as many pairs as are just enough, and of one pair in a hundred less. `factor` multiplies
    the ratio.
    """
    seen, fresh = rng.standard_normal(101), rng.standard_normal(51)
    ends = np.sort(np.abs(seen[:, None] / fresh), axis=None)
    deviation = np.sqrt(seen.size * fresh.size * (seen.size + fresh.size + 1) / 12.0)  # of the number of such pairs
    needed = 0.5 * ends.size + 0.5 + float(norm.isf(0.01)) * deviation
    far, enough, few = np.array([0.99 * ends.size, needed + 2.0, needed - 0.01 * ends.size]).astype(int)
    verdicts = []
    for pairs, clear in ((far, True), (enough, True), (few, False)):
        scaled = fresh * ends[pairs - 1 : pairs + 1].mean()
        found = as_unseen(np.append(scaled, seen), np.arange(152) < 51)
        expected = np.append(scaled, factor * raised(scaled, seen) * seen if clear else seen)
        witness = {"seen": seen, "fresh": scaled, "found": found}
        verdicts.append(Verdict(float(np.abs(found - expected).max()), 1e-12 * float(np.abs(found).max()), 1, witness))
    return Verdict.worst(verdicts)


def raised(fresh: Array, seen: Array) -> float:
    """The least ratio of the quantiles .5, .8, .9 of absolute values, which lowers nothing."""
    levels = [[np.sort(np.abs(part))[round(q * (len(part) - 1))] for q in (0.5, 0.8, 0.9)] for part in (fresh, seen)]
    return max(1.0, min(a / b for a, b in zip(*levels, strict=True)))


# ---- features and kernels


def measure_relevance(factor: float, rng: Generator) -> Verdict:
    """Shares for a linear function ``a'x``: of a number ``|a_j|`` times half its standard deviation.

    Of a column of two values it is half the mean of ``|a_j (x_i - x_k)|`` over all pairs of rows, itself included; of
    a category with indicators the same, of the category that comes. `factor` multiplies what numbers have.
    """
    m, a = 40, rng.uniform(0.5, 2.0, 6) * rng.choice([-1.0, 1.0], 6)
    level = rng.permutation(np.r_[0, 1, 2, rng.integers(0, 3, m - 3)])
    two = 3.0 * (rng.permutation(m) < rng.integers(5, 35))
    X = np.column_stack([rng.standard_normal((m, 2)) * rng.uniform(0.5, 4.0, 2), two, np.eye(3)[level]])

    def values(Z: Array) -> Array:
        return np.asarray(Z @ a)

    expected = np.zeros(6)
    for j in (0, 1):
        expected[j] = factor * abs(a[j]) * 0.5 * float(np.sqrt(np.mean((X[:, j] - X[:, j].mean()) ** 2)))
    for i in range(m):
        for k in range(m):
            expected[2] += 0.5 * abs(a[2] * (X[i, 2] - X[k, 2])) / m**2
            expected[3 + level[k]] += 0.5 * abs(a[3 + level[k]] - a[3 + level[i]]) / m**2
    found = relevance(lambda Z, steps: differences(values, Z, steps), values, X, [np.array([3, 4, 5])])
    return Verdict(float(np.abs(found - expected / expected.sum()).max()), 1e-12, 1, {"X": X, "a": a})


def measure_effective_rank(factor: float, rng: Generator) -> Verdict:
    """``(sum of eigenvalues)^2 / sum of their squares``: r for a multiple of a projection on r dimensions."""
    r, G = int(rng.integers(1, 7)), rng.standard_normal((8, 8))
    values, Q = rng.uniform(0.0, 3.0, 8), np.linalg.qr(G)[0]
    found = effective_rank((Q * values) @ Q.T), effective_rank(2.5 * Q[:, :r] @ Q[:, :r].T)
    direct = factor * float(values.sum()) ** 2 / float((values**2).sum()), factor * r
    apart = max(abs(a - b) for a, b in zip(found, direct, strict=True))
    return Verdict(apart, 1e-11, 1, {"G": G, "values": values})


def answer_claims(paper: str) -> list[Claim]:
    """One claim each."""
    return [
        Claim(
            "link-of-values",
            "Probabilities, before classes share what the predicted one leaves, are the softmax of an increasing "
            "function of values, 0 at 0, of constant slopes between knots.",
            *(paper, "estimators, probabilities", measure_link, 1.0, 1.001),
            trials=20,
        ),
        Claim(
            "likeliest-link",
            "The two slopes of a link have the least cost: none of the classes is certain, by Platt's two errors, and "
            "slopes are alike by a normal prior.",
            *(paper, "estimators, probabilities", measure_likeliest_link, 1.0, 1.2),
            trials=4,
        ),
        Claim(
            "shares-of-classes",
            "Classes that are not predicted share the rest by how often they are found, and stay less likely.",
            *(paper, "estimators, probabilities", measure_shares, 1.0, 0.9),
        ),
        Claim(
            "deviation-of-errors",
            "Errors have the deviation by their median size where outliers rule their squares.",
            *(paper, "losses, epsilon", measure_deviation, 1.0, 1.1),
            trials=20,
        ),
        Claim(
            "usual-range",
            "Targets are outliers some deviations from the median where squares say more than nine sizes of ten.",
            *(paper, "losses, outliers", measure_usual_range, 1.0, 1.001),
            trials=20,
        ),
        Claim(
            "conformal-quantiles",
            "Of exchangeable scores a new one exceeds the conformal quantile in as many cases as may be, and no less.",
            *(paper, "estimators, intervals", measure_conformal, 0.0, 0.04),
        ),
        Claim(
            "conformal-margins",
            "A margin around two quantiles holds as many new targets as is asked for; empty intervals are points.",
            *(paper, "estimators, intervals", measure_margin, 0.0, 0.06),
        ),
        Claim(
            "residuals-as-unseen",
            "Residuals of rows that a kernel has seen are raised by the least ratio of three quantiles, or not at all.",
            *(paper, "estimators, intervals", measure_unseen, 1.0, 1.001),
        ),
        Claim(
            "relevance-of-features",
            "The relevance of the features of a linear function is what its coefficients and the columns say.",
            *(paper, "estimators, relevance", measure_relevance, 1.0, 1.001),
            trials=4,
        ),
        Claim(
            "effective-rank",
            "The effective rank is that of the eigenvalues: r for a multiple of a projection on r dimensions.",
            *(paper, "estimators, relevance", measure_effective_rank, 1.0, 1.001),
        ),
    ]
