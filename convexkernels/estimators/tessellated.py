"""Estimators that learn a tessellated kernel."""

from __future__ import annotations

from typing import Any

from convexkernels.estimators.base import KernelClassifier
from convexkernels.families.base import Family
from convexkernels.families.box import UnitBox
from convexkernels.families.tessellated import Tessellated
from convexkernels.losses.base import Loss
from convexkernels.losses.hinge import Hinge

__all__ = ["TessellatedSVC"]


class TessellatedSVC(KernelClassifier):
    """Support vector classifier that learns its kernel among the tessellated ones, to a certified optimum.

    Parameters
    ----------
    C : float, > 0
        Price of one unit of slack. What is large depends on the kernel, whose values grow with the volume
        ``(1 + 2 margin)^n_features`` of the box: search a wide range of powers of 10, down to 1e-5.
    degree : int, >= 0
        Bound on the degree of the monomials of the kernel. Already degree 0 is universal.
    z_degree : int >= 0 or None
        Bound on the degree in the variable of integration; `degree` when None. The default 0 keeps P at
        ``2 (n_features + 1)`` rows for degree 1; on the tables of the paper it is as accurate as None, and faster.
    margin : float, > 0
        Features are scaled to [0, 1]; the kernel integrates over the box ``[-margin, 1 + margin]^n_features``.
    trace : float, > 0
        Bound on the trace of the matrix P that is learned; scaling it by s is scaling C by s.
    intercept : bool
        Whether the machines have an intercept.
    class_weight : None, "balanced" or dict
        Factors of C for the classes; "balanced" takes them inversely proportional to the weight of the classes.
    tol : float, > 0
        Relative duality gap at which learning stops.
    max_iter : int
        Limit on the number of steps of the solver.
    max_time : float, optional
        Seconds after which the best kernel so far is kept, with its certificate and a warning.
    solver : str or solver object
        ``"auto"``, ``"spectral-gradient"``, ``"interior-point"``, ``"frank-wolfe"`` or ``"conic"``.
    memory_limit : float, optional
        Bytes the matrices may take, checked before they are allocated; the free memory by default.
    verbose : bool
        Show the progress table.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
        The learned kernel on features as they were passed to `fit`: a valid ``kernel=`` of
        :class:`sklearn.svm.SVC`.
    solution_ : Solution
        With the certificate, the history and, in ``solution_.theta``, the matrix P. Its problem is stated on the
        scaled rows, sorted, with equal rows merged.
    scaling_ : Scaling
        How features are scaled.
    support_ : ndarray of int
        Rows of the training table that prediction uses.
    support_vectors_ : ndarray of shape (n_support, n_features_in_)
        These rows. The learned functions are polynomials between the lines through their coordinates.
    n_iter_ : int
        Number of steps of the solver, at least 1.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        When the features have names that are all text.

    Notes
    -----
    Colbert and Peet (JMLR 2020), (24). With more than two classes there is one machine per class, against the
    rest, and one kernel for all: the sum of their objectives is minimised, which stays convex.

    Features are scaled to [0, 1] by their range in the training table; constant ones are left out. When a point to
    predict lies outside the box, it is moved to the nearest point of the box.

    A fitted model pickles, and goes through ``skops.io.dump`` and ``load``; the m x m matrices are left out and made
    again when they are needed. What a reader is asked to trust (``skops.io.get_untrusted_types`` lists it) are classes
    of this package only, ``TessellatedSVC``, ``Scaling``, ``Solution``, ``Record``, ``DualityGap``, ``KernelLearning``,
    ``Machine``, ``Tessellated``, ``TessellatedGramSet``, ``Tessellation``, ``MonomialBasis``, ``UnitBox``, ``Hinge``,
    and ``numpy.dtype``.

    Cost: O(m^2) memory for m rows; a step takes O(m^2 n_features) operations with ``z_degree=0``, otherwise
    O(m^2 n_features^2) for degree 1, besides solving the machines.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from convexkernels import TessellatedSVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = TessellatedSVC(C=10.0).fit(X, y)
    >>> model.solution_.certificate.relative_gap <= 1e-4
    True
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        degree: int = 1,
        z_degree: int | None = 0,
        margin: float = 0.5,
        trace: float = 1.0,
        intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        max_time: float | None = None,
        solver: Any = "auto",
        memory_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.degree = degree
        self.z_degree = z_degree
        self.margin = margin
        self.trace = trace
        self.intercept = intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.solver = solver
        self.memory_limit = memory_limit
        self.verbose = verbose

    def _family(self, n_features: int) -> Family:
        return Tessellated(self.degree, self.z_degree, UnitBox(self.margin), self.trace)

    def _loss(self) -> Loss:
        return Hinge(self.C, self.intercept)
