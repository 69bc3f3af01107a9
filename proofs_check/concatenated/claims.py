"""Claims of Bohn, Griebel and Rieger, "A representer theorem for deep kernel learning" (JMLR 2019)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proofs_check.claim import REFUTED, Claim
from proofs_check.concatenated import formulas, learning
from proofs_check.universality import measure_strictly_positive

PAPER = "concatenated"


def _derivative(
    name: str,
    statement: str,
    number: str,
    objective: learning.Learning,
    off: Callable[[Any], Any] = learning.gradient_with_fixed_images,
    trials: int = 10,
) -> Claim:
    subject = objective, learning.whole_gradient
    return Claim(name, statement, PAPER, number, learning.measure_derivative, subject, (objective, off), trials=trials)


CLAIMS = [
    Claim(
        "theorem-1-learned-three-layers",
        "For L = 3 the library's interpolation reaches the value of any inner functions, at no larger norms.",
        PAPER,
        "Theorem 1",
        learning.measure_learned,
        learning.interpolation(3),
        learning.interpolation(3, left_out=1),
        trials=15,
    ),
    Claim(
        "theorem-1-learned-four-layers",
        "For L = 4 the library's regression reaches the value of any inner functions, at no larger norms.",
        PAPER,
        "Theorem 1",
        learning.measure_learned,
        learning.regression(4),
        learning.regression(4, left_out=1),
        trials=10,
    ),
    Claim(
        "theorem-1-other-penalties",
        "For Theta = log(1 + |f|^2) the library's regression of three layers reaches the value of any inner functions "
        "at no larger penalty.",
        PAPER,
        "Theorem 1, (7)",
        learning.measure_learned,
        learning.logarithmic(3),
        learning.logarithmic(3, left_out=1),
        trials=10,
    ),
    Claim(
        "degrees-of-freedom-as-printed",
        "dim V_l = N d_l for every kernel.",
        PAPER,
        "after (9)",
        formulas.measure_dimension,
        lambda N, q: N,
        lambda N, q: q,
        REFUTED,
        trials=20,
    ),
    Claim(
        "degrees-of-freedom-corrected",
        "dim V_l is N d_l or, if smaller, d_l times the dimension of the kernel's feature space.",
        PAPER,
        "after (9)",
        formulas.measure_dimension,
        min,
        lambda N, q: N,
        trials=20,
    ),
    Claim(
        "multilayer-mkl",
        "Multilayer MKL with radial outer function and K_2(x_i, x) - K_2(x_i, y) inside is the deep kernel (11).",
        PAPER,
        "Section 3.2.2",
        formulas.measure_multilayer,
        1.0,
        -1.0,
    ),
    Claim(
        "corollary-2",
        "The inner function of concatenated interpolation lies in the span of the translates at the data: the "
        "library's coefficients of a projection give the value of any competitor, at no larger norm.",
        PAPER,
        "Corollary 2",
        learning.measure_learned,
        learning.interpolation(2),
        learning.interpolation(2, left_out=1),
        trials=15,
    ),
    Claim(
        "coercivity-as-printed",
        "The smallest eigenvalue of the inner kernel matrix is positive, so the search may be restricted to a ball.",
        PAPER,
        "Section 3.3.2",
        measure_strictly_positive,
        formulas.polynomial_degree_1,
        formulas.linear_inner,
        REFUTED,
        trials=4,
    ),
    Claim(
        "coercivity-corrected",
        "It is for strictly positive definite inner kernels, not for the polynomial ones of the experiments.",
        PAPER,
        "Section 3.3.2",
        measure_strictly_positive,
        formulas.gaussian_inner,
        formulas.polynomial_degree_1,
        trials=4,
    ),
    Claim(
        "corollary-3",
        "The inner function of concatenated regression lies in the span of the translates at the data: the "
        "library's coefficients of a projection give the value of any competitor, at no larger norm.",
        PAPER,
        "Corollary 3",
        learning.measure_learned,
        learning.regression(2),
        learning.regression(2, left_out=1),
        trials=15,
    ),
    Claim(
        "equation-16-in-the-library",
        "The library's value of a least-squares layer is the objective (16) without mu |g|^2, lam y'(Q + lam I)^-1 y.",
        PAPER,
        "(16), (Reg)",
        formulas.measure_one_term,
        learning.library_regression,
        formulas.one_term_without_lam,
    ),
    Claim(
        "repulsion-12",
        "What the library adds to the norms is gamma times the sum of coth(|g(x_i) - g(x_j)|^2) over pairs i < j.",
        PAPER,
        "(12)",
        learning.measure_repulsion,
        (learning.repelled(2), 1.0),
        (learning.repelled(2), 1.01),
        trials=5,
    ),
    _derivative(
        "repulsion-12-slope",
        "The library's gradient of an objective with the repulsion (12) is the slope of its direct evaluation.",
        "(12), Section 3.3.2",
        learning.repelled(3),
        learning.gradient_without_repulsion,
        trials=5,
    ),
    _derivative(
        "derivative-of-int",
        "The derivative of Q(c) + N(c), with that of the inverse of Q_XX(c), is the library's gradient of (Int).",
        "Section 3.3.2",
        learning.interpolation(2),
    ),
    _derivative(
        "derivative-of-reg",
        "The derivative of (16) through three layers is the library's gradient, from one backward sweep.",
        "(16), (Reg)",
        learning.regression(3),
    ),
    _derivative(
        "derivative-of-logarithmic-penalty",
        "The library's gradient of (7) with log(1 + |f|^2) is the slope of its direct evaluation.",
        "(7), Section 3.3.2",
        learning.logarithmic(3),
        learning.gradient_of_squared_norms,
        trials=5,
    ),
    _derivative(
        "derivative-of-cubed-penalty",
        "The library's gradient of (7) with |f|^3 is the slope of its direct evaluation.",
        "(7), Section 3.3.2",
        learning.cubed(2),
        learning.gradient_of_squared_norms,
        trials=5,
    ),
    Claim(
        "matern-order-as-printed",
        "K_Matern,s characterizes the Sobolev space of order s, in any dimension.",
        PAPER,
        "Section 4",
        formulas.measure_sobolev_order,
        (lambda s, d: s, (2, 3)),
        (lambda s, d: s - 0.5, (2, 3)),
        REFUTED,
    ),
    Claim(
        "matern-order-corrected",
        "K_Matern,s characterizes the Sobolev space of order s + (d - 1)/2, which is s for d = 1 only.",
        PAPER,
        "Section 4",
        formulas.measure_sobolev_order,
        (lambda s, d: s + 0.5 * (d - 1), (1, 2, 3)),
        (lambda s, d: s, (2, 3)),
    ),
    Claim(
        "matern-smallest-order-as-printed",
        "s = 2 is the smallest s for which the space of K_Matern,s on the plane is an RKHS.",
        PAPER,
        "Section 4.1.1",
        formulas.measure_smallest_order,
        lambda s, d: s > 0.5 * d,
        lambda s, d: s > d,
        REFUTED,
    ),
    Claim(
        "matern-smallest-order-corrected",
        "s = 1 is: K_Matern,1 is exp(-r) up to a factor, bounded and strictly positive definite.",
        PAPER,
        "Section 4.1.1",
        formulas.measure_smallest_order,
        lambda s, d: s >= 1,
        lambda s, d: s >= 2,
    ),
]
