"""The choices of one case: data, family, loss, estimator, plain or hostile."""

import numpy as np

from convexkernels.estimators import ESTIMATORS

# Share of the problems, and of the estimators that can, which are met as many rows are.
MANY_ROWS = 0.2
# A hostile case makes each of its choices hostile with this probability.
HOSTILITY = 0.35


class Draw:
    """The choices of one case."""

    def __init__(self, case, rng):
        self.case, self.rng = case, rng

    def bad(self, chance=HOSTILITY):
        return self.case.hostile and self.rng.random() < chance

    def one(self, *options):
        return options[self.rng.integers(len(options))]

    def note(self, facet):
        self.case.facets.append(facet)

    def ten(self, low, high):
        return float(f"{10.0 ** self.rng.uniform(low, high):.3g}")

    # -- data ------------------------------------------------------------------------------------------------------

    def points(self, m, n):
        rng = self.rng
        X = rng.random((m, n)) if rng.random() < 0.6 else rng.normal(size=(m, n))
        if rng.random() < 0.2:
            X[m // 2 :] = X[: m - m // 2]
            self.note("duplicates")
        if not self.bad():
            return X
        style = self.one("constant", "grid", "far row", "clusters", "huge", "tiny", "offset", "same", "mixed", "zeros")
        self.note(f"features: {style}")
        if style == "constant":
            X[:, 0] = self.one(0.0, 1.0, 1e6)
        elif style == "grid":
            X = np.round(2.0 * X)
        elif style == "far row":
            X[m // 2] = self.ten(1, 12)
        elif style == "clusters":
            X[::3] += self.ten(1, 9)
        elif style in ("huge", "tiny"):
            X *= self.ten(2, 12) if style == "huge" else self.ten(-12, -2)
        elif style == "offset":
            X += self.ten(1, 6)
        elif style == "same":
            X[:] = X[0]
        elif style == "mixed":
            X *= 10.0 ** rng.uniform(-6, 6, n)
        else:
            X[rng.random((m, n)) < 0.7] = 0.0
        return X

    def targets(self, X, kind, outputs):
        rng, m = self.rng, len(X)
        size = np.abs(X).max() or 1.0
        f = np.sin(4.0 * X[:, :1] / size + np.arange(outputs)) + X[:, -1:] / size
        f = f + self.one(0.0, 0.3, 1.0) * rng.normal(size=(m, outputs))
        if kind == "labels":
            Y = np.where(f > np.median(f, axis=0), 1.0, -1.0)
            if self.bad():
                self.note("one positive label")
                Y[:] = -1.0
            Y[0], Y[-1] = 1.0, -1.0
            return Y
        if self.bad():
            style = self.one("constant", "zero", "offset", "huge", "tiny", "outlier", "ties")
            self.note(f"targets: {style}")
            if style in ("constant", "zero"):
                f[:] = 3.0 if style == "constant" else 0.0
            elif style == "offset":
                f += self.ten(2, 10)
            elif style in ("huge", "tiny"):
                f *= self.ten(3, 12) if style == "huge" else self.ten(-12, -3)
            elif style == "outlier":
                f[m // 2] = self.ten(3, 9)
            else:
                f = np.round(f)
        return f

    def library(self):
        """Many candidates at once, among them wide Gaussians that are constant to some digits."""
        listed = self.case.family.startswith("ck.Candidates([") and "by features" not in self.case.facets
        if self.case.kind == "estimator" or not listed or self.rng.random() > 0.15:
            return
        narrowest = float(10.0 ** self.rng.uniform(-1.5, 0.0))
        library = f"ck.kernel_library({self.case.X.shape[1]}, narrowest={narrowest!r}, widest={10.0 * narrowest!r})"
        self.case.family = f"ck.Candidates({library}, 'variance', allow_duplicates=True)"

    def constant_output(self):
        """One of several outputs may be solved before the first step."""
        case = self.case
        if case.y is None or case.y.ndim == 1 or case.loss.startswith(("ck.Hinge", "ck.Logistic")) or not self.bad():
            return
        case.y[:, self.rng.integers(case.y.shape[1])] = self.one(0.0, 3.0, 7e8)
        self.note("one constant output")

    def sample_weights(self, Y):
        rng, m = self.rng, len(Y)
        if rng.random() < 0.6:
            return None
        weights = rng.random(m) + 0.1
        if rng.random() < 0.3:
            weights[rng.random(m) < 0.3] = 0.0
            weights[0] = weights[-1] = 1.0
        if self.bad():
            style = self.one("huge", "tiny", "one row", "one class", "spread", "one huge")
            self.note(f"weights: {style}")
            if style in ("huge", "tiny"):
                weights *= self.ten(3, 9) if style == "huge" else self.ten(-9, -3)
            elif style == "one row":
                weights[1:] = 0.0
            elif style == "one class":
                weights = np.where(Y[:, 0] >= Y[0, 0], 1.0, 0.0)
            elif style == "spread":
                weights = 10.0 ** rng.uniform(-8, 4, m)
            else:
                weights[m // 2] = self.ten(3, 9)
        return weights

    # -- family and loss -------------------------------------------------------------------------------------------

    def loss(self):
        kind, name = self.one(
            ("labels", "Hinge"), ("labels", "Hinge"), ("numbers", "EpsilonInsensitive"), ("numbers", "LeastSquares"),
            ("labels", "Logistic"), ("numbers", "Pinball"),
        )  # fmt: skip
        size = self.ten(-8, 8) if self.bad() else self.ten(-2, 2)
        more = {
            "EpsilonInsensitive": f", epsilon={self.one(0.0, 0.1, 0.5)}",
            "Pinball": f", quantile={self.one(0.1, 0.5, 0.7, 0.99)}",
        }
        return kind, f"ck.{name}({size!r}{more.get(name, '')}, intercept={bool(self.rng.random() < 0.5)})"

    def kernel(self, n):
        scaled = f"{self.ten(-6, 9)!r} * " if self.bad(0.2) else ""
        kind = self.one("gaussian", "gaussian", "polynomial", "linear", "matern")
        width = self.ten(-6, 6) if self.bad() else self.ten(-1, 1.5)
        code = {
            "gaussian": f"ck.Gaussian({width!r})",
            "polynomial": f"ck.Polynomial({self.rng.integers(1, 4)}, {self.one(0.0, 1.0)})",
            "linear": "ck.Linear()",
            "matern": f"ck.Matern(2, {width!r})",
        }[kind]
        if self.rng.random() < 0.25:
            return f"('one', {scaled}{code}, [{self.rng.integers(n)}])"
        return scaled + code

    def matrices(self, m, definite):
        stack = []
        for _ in range(self.rng.integers(1, 5)):
            half = self.rng.normal(size=(m, self.one(1, 2, m)))
            K = half @ half.T
            if not definite and self.rng.random() < 0.4:
                other = self.rng.normal(size=(m, 1))
                K -= other @ other.T
            stack.append(K * (self.ten(-6, 9) if self.bad(0.2) else 1.0))
        return f"np.array({np.array(stack).tolist()!r})"

    def family(self, X):
        m, n = X.shape
        kind = self.one("tessellated", "tessellated", "polynomial", "candidates", "candidates", "span", "all", "ready")
        trace = self.ten(-9, 12) if self.bad(0.25) else self.ten(-1, 1)
        if kind == "tessellated":
            margin = self.one(0.1, 0.5) if not self.bad(0.2) else self.ten(-6, 4)
            low, high = X.min(axis=0), X.max(axis=0)
            side = np.where(high > low, high - low, 1.0) * margin + 4.0 * np.spacing(np.abs(X).max(axis=0))
            degree, z_degree = self.one((0, None), (1, None), (1, 0), (2, 0))
            box = f"ck.Box({(low - side).tolist()!r}, {(high + side).tolist()!r})"
            return f"ck.Tessellated({degree}, {z_degree}, box={box}, trace={trace!r})", X
        if kind == "polynomial":
            return f"ck.GeneralizedPolynomial({self.rng.integers(0, 4)}, trace={trace!r})", X
        if kind == "all":
            return "ck.AllKernelMatrices()", np.arange(m, dtype=float)[:, None]
        if kind == "ready":
            return f"ck.Candidates({self.matrices(m, True)}, {self.one('trace', 'mean', 'none')!r})", None
        if kind == "span":
            if self.rng.random() < 0.3:
                return f"ck.Span({self.matrices(m, False)}, trace={trace!r})", None
            return f"ck.Span([{', '.join(self.kernel(n) for _ in range(self.rng.integers(1, 4)))}], trace={trace!r})", X
        kernels = ", ".join(self.kernel(n) for _ in range(self.rng.integers(1, 6)))
        normalize = self.one("trace", "mean", "variance", "cosine", "none")
        options = f"center={bool(self.rng.random() < 0.2)}, allow_duplicates={bool(self.rng.random() < 0.5)}"
        return f"ck.Candidates([{kernels}], {normalize!r}, {options})", X

    def problem(self):
        case, rng = self.case, self.rng
        m, n = int(rng.integers(6, 36)), int(rng.integers(1, 4))
        if self.bad(0.15):
            m = int(rng.integers(1, 6))
            self.note(f"{m} rows")
        X = self.points(m, n)
        case.family, case.X = self.family(X)
        kind, case.loss = self.loss()
        Y = self.targets(X, kind, self.one(1, 1, 1, 2, 3))
        case.y = Y[:, 0] if Y.shape[1] == 1 else Y
        case.weights = self.sample_weights(Y)
        case.dtype = "float32" if rng.random() < 0.15 else "float64"
        case.tol = self.one(1e-2, 1e-4, 1e-4, 1e-6) if not self.bad(0.3) else self.one(1e-9, 1e-12, 10.0)
        others = ["spectral-gradient", "interior-point", "frank-wolfe", "reduced-gradient", "envelope"]
        rng.shuffle(others)
        conic = ["conic"] if rng.random() < 0.05 and m <= 16 else []
        case.solvers = ("auto", *others[: self.one(1, 2)], *conic)

    # -- estimators ------------------------------------------------------------------------------------------------

    def estimator(self):
        case, rng = self.case, self.rng
        name = self.one(*ESTIMATORS)
        kind, _ = ESTIMATORS[name]
        case.estimator = name
        m, n = int(rng.integers(12, 50)), int(rng.integers(1, 5))
        if self.bad(0.2):
            m = int(rng.integers(1, 6))
            self.note(f"{m} rows")
        X = self.points(m, n)
        Y = self.targets(X, kind, 1)
        case.y = np.where(Y[:, 0] > 0, "yes", "no") if kind == "labels" else Y[:, 0]
        case.weights = self.sample_weights(Y)
        if self.bad(0.15):
            X[m // 2, -1] = self.one(np.nan, np.inf, 1e200)
            self.note("an entry that is no number")
        case.X = X
        case.max_time = 8.0
        if rng.random() < 0.15:
            case.max_time = self.ten(-3, -0.5)
            self.note("short of time")
        elif rng.random() < 0.15:
            case.delay = self.ten(-3, -0.3)
            self.note("interrupted")

    # -- what is meant for many rows -------------------------------------------------------------------------------

    def many_rows(self):
        """A family by features, or one kernel on all rows, in place of what was drawn; estimators by features."""
        case, rng = self.case, self.rng
        if rng.random() >= MANY_ROWS:
            return
        if case.kind == "estimator":
            count = int(rng.integers(1, 40))
            case.options = {"landmarks": count} if case.estimator.startswith(("Tessellated", "MultipleKernel")) else {}
            return
        if case.X is None or case.family.startswith("ck.AllKernelMatrices"):
            return
        m, n = case.X.shape
        if case.loss.startswith("ck.LeastSquares") and rng.random() < 0.7:
            self.one_kernel(self.whole_kernel(n))
            return
        if rng.random() < 0.5:
            degree, count = self.one(0, 1, 2), int(rng.integers(1, 60))
            trace = self.ten(-9, 12) if self.bad(0.25) else self.ten(-1, 1)
            box = f"ck.Box({case.X.min(axis=0).tolist()!r}, {case.X.max(axis=0).tolist()!r})"
            case.family = f"ck.Tessellated({degree}, 0, box={box}, trace={trace!r}, landmarks={count})"
        else:
            kernels = [self.whole_kernel(n) for _ in range(rng.integers(1, 4))]
            normalize = self.one("trace", "mean", "variance", "cosine", "none")
            landmarks = int(rng.integers(1, m + 1))
            options = f"allow_duplicates=True, landmarks={landmarks}"
            case.family = f"ck.Candidates([{', '.join(kernels)}], {normalize!r}, {options})"
            support = case.loss.startswith(("ck.Hinge", "ck.EpsilonInsensitive", "ck.Pinball"))
            if support and len(kernels) == 1 and 2 * landmarks > m:  # nearly the kernel itself
                self.one_kernel(kernels[0])
                return
        self.note("by features")

    def one_kernel(self, code):
        """One kernel on all rows is the problem: nothing is learned but the function."""
        case = self.case
        case.kernel, case.family, case.dtype, case.solvers = code, "", "float64", ("auto",)
        case.weights = None if case.weights is None else np.maximum(case.weights, 1e-9)

    def whole_kernel(self, n):
        """A kernel of all columns."""
        while (code := self.kernel(n)).startswith("('"):
            pass
        return code
