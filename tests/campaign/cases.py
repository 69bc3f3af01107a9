"""Problem i of seed S: drawn from a generator of its own, described by code that a script can repeat."""

from dataclasses import dataclass, field

import numpy as np

import convexkernels as ck

from .draw import Draw

# Shares of the kinds of case.
KINDS = {"problem": 0.72, "estimator": 0.18, "interrupt": 0.1}


@dataclass
class Case:
    """One problem or estimator with its data; `family` (or `kernel`), `loss` and `estimator` are expressions."""

    seed: int
    index: int
    kind: str
    hostile: bool
    X: np.ndarray | None = None
    y: np.ndarray | None = None
    weights: np.ndarray | None = None
    family: str = ""
    kernel: str = ""
    loss: str = ""
    estimator: str = ""
    dtype: str = "float64"
    tol: float = 1e-4
    solvers: tuple[str, ...] = ("auto",)
    max_time: float | None = None
    delay: float = 0.0
    options: dict = field(default_factory=dict)
    facets: list[str] = field(default_factory=list)

    def problem(self):
        """State the problem."""
        if self.kernel:
            return ck.FixedKernel(
                evaluate(self.kernel), evaluate(self.loss), self.X, self.y, sample_weight=self.weights
            )
        return ck.KernelLearning(
            evaluate(self.family), evaluate(self.loss), self.X, self.y, sample_weight=self.weights, dtype=self.dtype
        )

    def __str__(self):
        what = self.estimator or f"{self.kernel or self.family[:90]}, {self.loss}"
        rows = 0 if self.y is None else len(self.y)
        return f"{self.kind} {self.index} of seed {self.seed}: {what}, {rows} rows, {', '.join(self.facets) or 'plain'}"


def evaluate(code):
    """The object that an expression of a case makes."""
    return eval(code, {"np": np, "ck": ck, "Cells": Cells})


def Cells(*arguments, **named):
    from convexkernels.cells.options import Cells as Options

    return Options(*arguments, **named)


def make_case(seed, index):
    """Case `index` of `seed`, whatever was drawn before."""
    rng = np.random.default_rng([seed, index])
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    case = Case(seed, index, kind, bool(rng.random() < 0.5))
    draw = Draw(case, rng)
    draw.estimator() if kind == "estimator" else draw.problem()
    # A generator of its own: what was drawn before there were features is drawn still.
    Draw(case, np.random.default_rng([seed, index, 5])).many_rows()
    Draw(case, np.random.default_rng([seed, index, 8])).constant_output()
    Draw(case, np.random.default_rng([seed, index, 13])).library()
    if kind == "interrupt":
        case.delay = float(10.0 ** rng.uniform(-3.0, -0.5))
        case.max_time = None
        if rng.random() < 0.3:
            case.max_time, case.delay = case.delay, 0.0
    return case
