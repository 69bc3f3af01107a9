"""The excess risk of spectral models by the Rademacher complexity of their functions."""

from typing import Any, NamedTuple, Self

import numpy as np

from convexkernels.backend import to_numpy
from convexkernels.bounds.statement import (
    Bound,
    check_count,
    check_finite,
    check_inside,
    check_kind,
    check_open_constant,
)
from convexkernels.exceptions import InvalidInputError
from convexkernels.validation import check_number


def rademacher_bound(model: Any, X: Any) -> float:
    """Bound of the complexity of ``{x -> W'phi(x): |W|_* <= B}`` on given points, for a fitted model [LLW20 (11)].

    ``B / n sqrt(K sum_i k(x_i, x_i))`` for K scores, B being the trace norm of the W that was learned. Of a regressor
    W is that of functions in units of y, so that for 1000 y the bound is 1000 times as large; of a classifier that of
    its scores.

    Parameters
    ----------
    model : SpectralKernelClassifier or SpectralKernelRegressor
        Fitted.
    X : array-like of shape (n, n_features)
        The rows it learned from.

    Notes
    -----
    The theorem is about a set of functions that is fixed before the rows are seen: frequencies, and a B that no W
    exceeds. For the frequencies and the W that were learned from the same rows it is an indication, no proof; the
    intercept, which costs nothing, is not in it.
    """
    W = _weights(model)
    trace = float(np.sum(model.kernel_.diag(X)))
    return float(np.linalg.norm(W, "nuc")) / len(X) * float(np.sqrt(W.shape[1] * trace))


def rademacher_rate(model: Any, n: int) -> float:
    """The coarser bound ``B sqrt(K / n)``, whose order is that of the excess risk [LLW20 (12)].

    It holds for features without phases, where no k(x, x) is above 1; others are refused. Units are those of
    :func:`rademacher_bound`.

    Parameters
    ----------
    model : SpectralKernelClassifier or SpectralKernelRegressor
        Fitted.
    n : int, >= 1
        Number of rows.
    """
    W = _weights(model)
    if model.solution_.kernel.phase is not None:
        raise InvalidInputError(
            "features with phases can have k(x, x) > 1; use rademacher_bound, or feature_map='psi'."
        )
    return float(np.linalg.norm(W, "nuc") * np.sqrt(W.shape[1] / check_count("n", n)))


def _weights(model: Any) -> Any:
    """W of a fitted model, shape (n_components_out, K); of a regressor in units of y."""
    if not hasattr(getattr(getattr(model, "solution_", None), "theta", None), "W"):
        raise InvalidInputError(
            f"the complexity is that of spectral features, got {model!r}; pass a fitted SpectralKernelClassifier or "
            "SpectralKernelRegressor."
        )
    # Numbers are learned as `center + spread * t`, and complexities of functions are multiplied with them.
    return np.asarray(to_numpy(model.solution_.theta.W), dtype=np.float64) * getattr(model.targets_, "spread", 1.0)


def lipschitz_constant(loss: str, n_scores: int) -> float:
    """L of a loss of scores, which have the 2-norm [LLW20 Theorem 3].

    Parameters
    ----------
    loss : {"hinge", "logistic"}
        The squared loss has none on all scores.
    n_scores : int, >= 1
        1 for two classes; the slopes ``y' - y``, and p - y, have norms up to sqrt 2 for more.
    """
    check_count("n_scores", n_scores)
    if not isinstance(loss, str) or loss not in ("hinge", "logistic"):
        raise InvalidInputError(f"loss must be 'hinge' or 'logistic', got {loss!r}; others have no Lipschitz constant.")
    return 1.0 if n_scores == 1 else float(np.sqrt(2.0))


class ComplexityNumbers(NamedTuple):
    """What the bound of the excess risk has to know of a set of functions, and of the loss [LLW20 Theorem 3].

    Attributes
    ----------
    complexity : float
        R, such as :func:`rademacher_bound`.
    lipschitz : float
        L of the loss (:func:`lipschitz_constant`).
    n : int
        Number of rows.
    """

    complexity: float
    lipschitz: float
    n: int

    @classmethod
    def of(cls, model: Any, X: Any) -> Self:
        """The numbers of a fitted :class:`SpectralKernelClassifier` on the rows `X` that it learned from.

        An indication, no proof, as :func:`rademacher_bound` says; the squared loss is refused.
        """
        complexity = rademacher_bound(model, X)
        return cls(complexity, lipschitz_constant(model.loss, _weights(model).shape[1]), len(X))


def excess_risk_bound(numbers: ComplexityNumbers, *, failure: float, constant: float | None) -> Bound:
    """``4 sqrt 2 L R + c sqrt(log(1 / failure) / n)``: more than the best of the functions has [LLW20 Theorem 3, (10)].

    Parameters
    ----------
    numbers : ComplexityNumbers
        R and L are >= 0, n >= 1.
    failure : float, in (0, 1)
        The delta of the theorem: how probable it may be that the bound does not hold.
    constant : float, >= 0
        c, of which the theorem says only that there is one.
    """
    check_kind("numbers", numbers, ComplexityNumbers)
    R, L = (check_number(name, getattr(numbers, name), low=0.0) for name in ("complexity", "lipschitz"))
    delta = check_inside("failure", failure, 0.0, 1.0)
    c, n = check_open_constant("constant", constant, "Theorem 3"), check_count("n", numbers.n)
    value = 4.0 * float(np.sqrt(2.0)) * L * R + c * float(np.sqrt(np.log(1.0 / delta) / n))
    what = f"the bound for complexity={R:g}, lipschitz={L:g}, failure={delta:g} and constant={c:g}"
    return Bound(check_finite(what, value, "pass smaller ones, or a larger failure"), 1.0 - delta)
