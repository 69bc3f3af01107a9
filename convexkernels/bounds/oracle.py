"""The approximation error of a kernel, and the oracle inequality for hierarchical Gaussian kernels."""

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from convexkernels.arrays import Array, distinct_rows
from convexkernels.bounds.statement import Bound, check_count, check_finite, check_kind, check_open_constant
from convexkernels.certificate import DualityGap
from convexkernels.exceptions import InvalidInputError
from convexkernels.kernels.base import Kernel
from convexkernels.losses.base import Loss
from convexkernels.losses.fit import fit
from convexkernels.losses.support_vector import SupportVectorLoss
from convexkernels.problems.decision_function import DecisionFunction
from convexkernels.problems.rounding import UNIT, charge_above, charged_gap
from convexkernels.validation import check_number, check_points, check_vector


def approximation_error(
    kernel: Kernel, X: Any, y: Any, lam: float, *, loss: Loss, masses: Any = None, tol: float = 1e-6
) -> DualityGap:
    """Bounds on ``A(lam) = min over f in H of  lam |f|^2 + R(f) - R*`` [ST16 Section 3] for a distribution on rows.

    The distribution has the mass ``masses[i]`` at ``(x_i, y_i)``, so that its risk R, and the risk R* of the best of
    all functions, are sums. Rows that are equal in `X` and differ in `y` are noise. Of a table with equal masses this
    is the empirical distribution, for which R* is 0 unless rows repeat: the A of the distribution that the table was
    drawn from is another number.

    Parameters
    ----------
    kernel : Kernel
        Of the space H; for a fitted estimator its ``kernel_``.
    X : array-like of shape (m, n_features)
    y : array-like of shape (m,) or (m, n_outputs)
        As `loss` wants them.
    lam : float, > 0
        Beside the risk, which is a mean.
    loss : Loss
        Its regularization parameter and its intercept play no part.
    masses : array-like of shape (m,), optional
        Numbers > 0, divided by their sum.
    tol : float
        Relative gap of the minimum.

    Returns
    -------
    DualityGap
        ``lower <= A(lam) <= upper``, what rounding may have cost included: a tiny lam, or noise far
        above A, widens it.

    Raises
    ------
    InvalidInputError
        For interpolation, which has no risk.
    """
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"kernel must be a Kernel, such as the kernel_ of a fitted estimator, got {kernel!r}.")
    if not isinstance(loss, Loss):
        raise InvalidInputError(f"loss must be a loss such as LeastSquares() or Hinge(), got {loss!r}.")
    if loss.needs_definite:
        raise InvalidInputError(f"{loss!r} has no risk; pass a loss that is finite, such as LeastSquares().")
    points = check_points(X)
    shares = np.ones(len(points)) if masses is None else check_vector("masses", masses, len(points), per="row")
    if not (shares > 1e-300 * shares.max()).all() or not shares.max() > 0.0:
        least, most = shares.min(), shares.max()
        raise InvalidInputError(
            f"masses must be > 0 and nearer to each other, got {least:g} and {most:g}; leave out rows without mass."
        )
    shares = shares / shares.max()  # or their sum might leave the range of numbers
    check_number("tol", tol, low=0.0, open_low=True)
    at_lam = copy(loss.at(check_number("lam", lam, low=0.0, open_low=True)))
    at_lam.intercept = False
    Y, shares = at_lam.targets(y, len(points)), shares / shares.sum()
    K, (least, error) = kernel(points), _least_risk(at_lam, points, Y, shares)
    found = fit(at_lam, K, Y, shares, tol=tol)
    whole = charged_gap(at_lam, Y, shares, kernel._sizes(points), found, found.W @ K)
    # R* and the difference are rounded, too; A is not below 0, but differences are.
    hidden = error + UNIT * len(points) * (least + whole.upper / at_lam.cost)
    lower = max(0.0, whole.lower / at_lam.cost - least - hidden)
    upper = max(lower, whole.upper / at_lam.cost - least + hidden)
    return DualityGap(upper, lower, charged=whole.charged / at_lam.cost + 2.0 * hidden)


def _least_risk(loss: Loss, points: Array, Y: Array, shares: Array) -> tuple[float, float]:
    """R*: in every point the least expected loss of a constant, summed over outputs; and what it is right to."""
    risk, error, groups = 0.0, 0.0, distinct_rows(points)[2]
    for group in range(groups.max() + 1):
        rows = np.flatnonzero(groups == group)
        there, weights = Y[:, rows], shares[rows]
        best = np.broadcast_to(loss.least_constant(there, weights)[:, None], there.shape)
        risk += float(loss.total(there, best, weights).sum())
        if rows.size > 1:
            error += charge_above(loss, there, weights, best, np.zeros_like(there), UNIT * loss.sizes(there))
    return risk, error / loss.cost


class SVMNumbers(NamedTuple):
    """What the oracle inequality has to know of an SVM with a hierarchical Gaussian kernel [ST16 Theorem 3.2].

    Attributes
    ----------
    approximation_error : float
        A(lam), the ``upper`` of :func:`approximation_error` where the distribution is known.
    lam : float
        Beside the mean of the losses.
    n : int
        Rows that the SVM learned from.
    largest_loss : float
        B: no loss of a label and a clipped value is more.
    """

    approximation_error: float
    lam: float
    n: int
    largest_loss: float

    @classmethod
    def of(cls, model: Any) -> Self:
        """The numbers of a fitted hierarchical estimator whose loss is the hinge, pinball or epsilon-insensitive one.

        A is that of the distribution on the rows, and the kernel was learned from the same rows: an indication, no
        proof. Equal rows count once.

        Raises
        ------
        InvalidInputError
            For other models and losses, several outputs, intercepts, values that are not clipped, and functions that
            are combined, or trained in cells or on landmarks.
        """
        tree = getattr(model, "tree_", None)
        if tree is None:
            raise InvalidInputError(
                f"the theorem is about hierarchical Gaussian kernels, got {type(model).__name__}; fit "
                "HierarchicalGaussianClassifier(loss='hinge')."
            )
        problem = model.solution_.problem
        loss = problem.stated_at(model.solution_.theta)["loss"]
        if not isinstance(loss, SupportVectorLoss) or loss.intercept:
            raise InvalidInputError(
                f"the theorem is for losses that are Lipschitz continuous and can be clipped, without intercept, got "
                f"{loss!r}; fit with loss='hinge', 'pinball' or 'epsilon_insensitive'."
            )
        if len(problem.Y) > 1 or problem.bounds is None:
            raise InvalidInputError(
                f"the theorem is about one clipped function, got {len(problem.Y)} outputs and clip={model.clip}; fit "
                "two classes, or one output, with clip=True."
            )
        if model.plan_.method != "dense" or not isinstance(model.function_, DecisionFunction):
            raise InvalidInputError(
                f"the theorem is about one function of all rows, got {model.plan_.method} training and "
                f"{type(model.function_).__name__}; fit with search=TreeSearch(n_restarts=1) and "
                "selection=TreeSelection(combine='one', training=AllRows('dense'))."
            )
        y, total = problem.Y[0], float(problem.weights.sum())
        largest = max(float(loss.pointwise(y, np.full_like(y, end[0, 0]))[0].max()) for end in problem.bounds)
        found = approximation_error(tree, problem.X, y, loss.lam / total, loss=loss, masses=problem.weights)
        return cls(found.upper, loss.lam / total, problem.m, largest)


def hierarchical_risk_bound(svm: SVMNumbers, *, tau: float, constant: float | None) -> Bound:
    """Excess risk ``R(f) - R*`` of an SVM with a hierarchical Gaussian kernel, clipped [ST16 Theorem 3.2].

    ``9 A + K ln n / (lam n) + 15 tau / n sqrt(A / lam) + 300 B tau / sqrt n`` with probability ``1 - 3 exp(-tau)``.

    Parameters
    ----------
    svm : SVMNumbers
        A and B are >= 0, lam > 0, n >= 2.
    tau : float, >= 1
    constant : float, >= 0
        K, which the theorem does not determine.

    Notes
    -----
    The loss has to be Lipschitz continuous and clippable: the hinge loss (B = 2 for values clipped to [-1, 1]) and
    the pinball loss are. The third term is printed without the Lipschitz constant, which is 1 for the hinge loss.
    """
    check_kind("svm", svm, SVMNumbers)
    A, B = (check_number(name, getattr(svm, name), low=0.0) for name in ("approximation_error", "largest_loss"))
    lam, tau = check_number("lam", svm.lam, low=0.0, open_low=True), check_number("tau", tau, low=1.0)
    n, K = float(check_count("n", svm.n, low=2)), check_open_constant("constant", constant, "Theorem 3.2")
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is refused
        value = 9.0 * A + K * np.log(n) / (lam * n) + 15.0 * tau / n * np.sqrt(A / lam) + 300.0 * B * tau / np.sqrt(n)
    what = f"the bound for approximation_error={A:g}, lam={lam:g}, largest_loss={B:g}, tau={tau:g} and constant={K:g}"
    value = check_finite(what, value, "pass a larger lam, or a smaller tau or constant")
    return Bound(value, max(0.0, 1.0 - 3.0 * float(np.exp(-tau))))
