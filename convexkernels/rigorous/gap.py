"""Two numbers that bound the optimum of a kernel learning problem in exact arithmetic."""

import numpy as np

from convexkernels.arrays import Array
from convexkernels.certificate import Evidence, RigorousGap
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.all_kernel_matrices import AllKernelMatricesGramSet
from convexkernels.families.base import GramSet
from convexkernels.families.candidates import CandidateGramSet
from convexkernels.families.generalized_polynomial import GeneralizedPolynomialGramSet
from convexkernels.families.tessellated import TessellatedGramSet
from convexkernels.losses.base import BoxDual, Loss
from convexkernels.rigorous.candidates import EnclosedCandidates
from convexkernels.rigorous.dual import dual_below, exact_point, primal_above
from convexkernels.rigorous.matrices import EnclosedKernelMatrices, EnclosedPolynomials, EnclosedTessellated
from convexkernels.rigorous.measured import EnclosedFamily, Measured
from convexkernels.rigorous.rounding import UNDERFLOW, U

# Smallest magnitude, beside 0, of what is given.
SMALLEST = 1e-40
# Where rounding alone is this share of the optimum, the result says so.
NOTEWORTHY = 1e-6


def rigorous_gap(
    gram_set: GramSet, loss: Loss, X: Array, Y: Array, weights: Array, theta: Array, alpha: Array, witness: Array
) -> RigorousGap:
    """Bounds on the optimum over the set, from any point: `theta` is moved into it, dual variables are made feasible.

    `alpha` and `witness`, shape (n_outputs, m), are behind the upper and the lower bound. Losses without a box dual,
    and families or kernels without error bounds, are refused by name.
    """
    duals = _box_duals(loss, Y, weights)
    _refuse_extremes(X=X, y=Y, sample_weight=weights, C=np.array([loss.cost, loss.lam]))
    with np.errstate(all="ignore"):  # what overflows makes a bound infinite, which is what it then is
        family = enclosed(gram_set, X)
        W, V = (_exact_points(loss, duals, Y, A) for A in (alpha, witness))
        measured = family.measure(theta, W, V)
        lower, s, charged_below = _lower(loss, duals, V, measured)
        upper, charged_above, b, multiples = _upper(loss, duals, Y, weights, W, measured)
    charged = charged_below + charged_above
    share = charged / max(abs(upper), abs(lower)) if max(abs(upper), abs(lower)) > 0.0 else 0.0
    note = ""
    if not share <= NOTEWORTHY:
        amount = f"{share:.1g} of the optimum" if np.isfinite(share) else "more than the optimum"
        note = f"rounding may cost {amount}: the kernel matrix has lost the digits that matter"
    evidence = Evidence(measured.theta, W, b, multiples, V, s)
    return RigorousGap(upper=upper, lower=lower, charged=charged, note=note, evidence=evidence)


def enclosed(gram_set: GramSet, X: Array) -> EnclosedFamily:
    """The set with error bounds, or a refusal that names it."""
    if isinstance(gram_set, CandidateGramSet) and not gram_set.is_factored:
        return EnclosedCandidates(gram_set)
    if isinstance(gram_set, TessellatedGramSet):
        return EnclosedTessellated(gram_set)
    if isinstance(gram_set, GeneralizedPolynomialGramSet):
        return EnclosedPolynomials(gram_set, X)
    if isinstance(gram_set, AllKernelMatricesGramSet):
        return EnclosedKernelMatrices(gram_set)
    what = repr(gram_set.family) if hasattr(gram_set, "family") else type(gram_set).__name__
    raise InvalidInputError(
        f"rigorous=True: no error bound is known for the family {what} (the set of a Span is defined by a tolerance, "
        "so that it has no exact optimum; matrices by their features are not enclosed); verify() without it measures "
        "any family."
    )


def _box_duals(loss: Loss, Y: Array, weights: Array) -> list[BoxDual]:
    duals = [dual for y in Y if (dual := loss.box_dual(y, weights)) is not None]
    if len(duals) < len(Y):
        raise InvalidInputError(
            f"rigorous=True: no error bound is known for the dual of {loss!r}, which is no parabola on a box; there "
            "are bounds for hinge, epsilon-insensitive, squared and pinball losses."
        )
    return duals


def _exact_points(loss: Loss, duals: list[BoxDual], Y: Array, alpha: Array) -> Array:
    parts = zip(alpha, Y, duals, strict=True)
    return np.array([exact_point(loss.coefficients(a, y), dual, loss.intercept) for a, y, dual in parts])


def _refuse_extremes(**numbers: Array) -> None:
    """Products of what passes neither overflow nor underflow before the radii notice."""
    for name, values in numbers.items():
        size = np.abs(values[values != 0.0])
        if size.size and not (size.min() >= SMALLEST and size.max() <= 1.0 / SMALLEST):
            worst = size.min() if size.min() < SMALLEST else size.max()
            raise InvalidInputError(
                f"rigorous=True: {name} has an entry of magnitude {worst:.3g}; bounds in exact arithmetic need 0 or "
                f"magnitudes from {SMALLEST:g} to {1.0 / SMALLEST:g}: rescale it, or round it to 0."
            )


def _lower(loss: Loss, duals: list[BoxDual], V: Array, measured: Measured) -> tuple[float, float, float]:
    """Lower bound, the multiple of V that it belongs to, and what was charged for rounding."""
    parts = [dual_below(v, dual) for v, dual in zip(V, duals, strict=True)]
    linear, squares, charge = (sum(part[i] for part in parts) for i in range(3))
    size = sum(abs(part[0]) for part in parts)
    linear -= len(parts) * 2.0 * U * size
    curvature = (squares * (1.0 + len(parts) * 2.0 * U) + 0.5 * measured.support) * (1.0 + 4.0 * U)
    if not np.isfinite(linear) or not np.isfinite(curvature):
        return 0.0, 0.0, np.inf  # w = 0 is feasible
    s = 0.0 if linear <= 0.0 else (min(1.0, 0.5 * linear / curvature) if curvature > 0.0 else 1.0)
    rise, fall = s * linear, s * s * curvature
    bound = loss.scale * (rise - fall - 8.0 * U * (rise + fall) - UNDERFLOW)
    charged = loss.scale * (s * charge + s * s * 0.5 * measured.charged)
    return max(0.0, bound - 2.0 * U * abs(bound)), s, charged


def _upper(
    loss: Loss, duals: list[BoxDual], Y: Array, weights: Array, W: Array, measured: Measured
) -> tuple[float, float, Array, Array]:
    """Upper bound, what was charged for rounding, and intercepts and multiples of the functions behind it."""
    b, multiples = np.zeros(len(Y)), np.ones(len(Y))
    total, plain = 0.0, 0.0
    for k, (dual, y, w) in enumerate(zip(duals, Y, W, strict=True)):
        f, radius, norm = measured.values[k], measured.radius[k], float(measured.norms[k])
        if not (np.isfinite(f).all() and np.isfinite(radius).all() and np.isfinite(norm)):
            return np.inf, np.inf, b, multiples
        quadratic = max(0.0, float(w @ f))
        _, b[k], s = loss.primal(f, quadratic, y, weights)
        trials = {1.0: primal_above(dual, f, radius, norm, b[k], 1.0, measured.defect)}
        if s != 1.0:
            margins = (y * (f + b[k]) - radius)[weights > 0.0]
            safe = (1.0 + 16.0 * U) / float(margins.min()) if margins.min() > 0.0 else s
            trials |= {t: primal_above(dual, f, radius, norm, b[k], t, measured.defect) for t in (s, safe)}
        multiples[k] = min(trials, key=lambda t: trials[t])
        total += trials[multiples[k]]
        plain += primal_above(dual, f, 0.0 * radius, quadratic, b[k], multiples[k])
    upper = loss.scale * total * (1.0 + 4.0 * (len(Y) + 1) * U) + UNDERFLOW
    return upper, max(0.0, upper - loss.scale * plain), b, multiples
