"""What a point of a problem is worth, in extended precision, by formulas that share nothing with the library.

The bounds of a duality gap are those of the problem over the given doubles: here the matrices, the objective of the
returned function and the value of a dual point are evaluated again with 64 bits of mantissa (`numpy.longdouble`).
"""

import math
from itertools import combinations_with_replacement

import mpmath as mp
import numpy as np

import convexkernels as ck
from convexkernels.bases.monomials import monomial_basis

LONG = np.longdouble


def kernel_matrix(kernel, X):
    """The matrix of a kernel of the library by its formula."""
    name, x = type(kernel).__name__, X.astype(LONG)
    if name == "OnColumns":
        columns = list(kernel.columns) if not isinstance(kernel.columns, slice) else kernel.columns
        return kernel_matrix(kernel.kernel, X[:, columns])
    if hasattr(kernel, "weights") and hasattr(kernel, "kernels"):
        return sum(LONG(c) * kernel_matrix(k, X) for c, k in zip(kernel.weights, kernel.kernels, strict=True))
    if name == "Scaled":
        return LONG(kernel.scale) * kernel_matrix(kernel.kernel, X)
    if name == "Precomputed":
        rows = kernel.rows(X)
        return np.asarray(kernel.matrix).astype(LONG)[np.ix_(rows, rows)]
    if name == "Linear":
        return x @ x.T
    if name == "Polynomial":
        return (x @ x.T + LONG(kernel.offset)) ** kernel.degree
    squared = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    if name == "Gaussian":
        return np.exp(-LONG(kernel.gamma) * squared)
    if name == "Matern" and kernel.order == 2:
        r = np.sqrt(squared) / LONG(kernel.length)
        return (1 + r) * np.exp(-r)
    raise NotImplementedError(name)


class ExactOne:
    """One kernel, on all rows."""

    def __init__(self, problem, X, m):
        self.matrix = kernel_matrix(problem.kernel_, X)

    def gram(self, solution):
        return self.matrix

    def support(self, W):
        return form_above(W, self.matrix)


class ExactStack:
    """Candidates and spans: theta are weights. Where they are met by features, these are what defines the kernels."""

    def __init__(self, problem, X, m):
        family = problem.family
        if getattr(family, "landmarks", None) is not None:
            self.is_simplex = True
            parts = [part.astype(LONG) for part in problem.gram_set.stack.parts]
            self.matrices = np.array([part @ part.T for part in parts])
            self.normalize("none" if family.normalize == "cosine" else family.normalize, m)
            return
        if X is None:
            X = np.arange(m, dtype=float)[:, None]
            kernels = [kernel for _, kernel, _ in family.candidates.entries]
        else:
            X, kernels, _ = family.candidates.on(X)
        self.matrices = np.array([kernel_matrix(kernel, X) for kernel in kernels])
        self.is_simplex = isinstance(family, ck.Candidates)
        if self.is_simplex:
            if family.center:
                M = np.eye(m, dtype=LONG) - LONG(1) / m
                self.matrices = np.array([M @ K @ M for K in self.matrices])
            self.normalize(family.normalize, m)

    def normalize(self, rule, m):
        diagonals = np.array([np.diag(K) for K in self.matrices])
        if rule == "cosine":
            sizes = np.sqrt(diagonals[:, :, None] * diagonals[:, None, :])
            self.matrices = np.divide(self.matrices, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        elif rule != "none":
            constant = self.matrices.mean(axis=(1, 2)) * m if rule == "variance" else LONG(0)
            mass = LONG(1) if rule == "trace" else LONG(m)
            self.matrices *= (mass / (diagonals.sum(axis=1) - constant))[:, None, None]

    def gram(self, solution):
        theta = np.asarray(solution.theta).astype(LONG)
        if self.is_simplex:
            assert (theta >= -1e-12).all()
            theta = np.maximum(theta, 0)
            theta = theta / theta.sum()
        return np.tensordot(theta, self.matrices, axes=1)

    def support(self, W):
        if not self.is_simplex:
            return None  # its own semidefinite program
        return max(form_above(W, K) for K in self.matrices)


class ExactAll:
    """Every matrix of trace m."""

    def __init__(self, problem, X, m):
        self.m = m

    def gram(self, solution):
        K = np.asarray(solution.theta).astype(LONG)
        return K * (self.m / np.trace(K))

    def support(self, W):
        return self.m * largest_eigenvalue(W.T @ W)


class ExactMoments:
    """Kernels ``sum_ij P_ij k_ij`` with P >= 0 of bounded trace: polynomial, and tessellated by integrals."""

    def __init__(self, problem, X, m):
        family = problem.family
        self.trace = LONG(family.trace)
        x, self.Z = X.astype(LONG), None
        coordinates = getattr(problem.gram_set, "coordinates", None)
        if getattr(family, "landmarks", None) is not None:
            self.parts = landmark_parts(family, problem.gram_set)
        elif coordinates is not None and coordinates.G is not None:
            self.Z = sorted_features(X, coordinates, family.degree, problem.gram_set.modulo_constants)
        elif isinstance(family, ck.GeneralizedPolynomial):
            self.Z = np.stack([np.prod(x**row, axis=1) for row in powers(X.shape[1], family.degree)])
        else:
            self.parts = tessellated_parts(family, X, x)

    def gram(self, solution):
        theta = np.asarray(solution.theta).astype(LONG)
        trace = np.trace(theta)  # that of P, of which theta may be a rotation
        share = min(LONG(1), self.trace / trace)
        if self.Z is not None:
            return share * self.Z.T @ theta @ self.Z
        kernel = getattr(solution.kernel, "kernel", solution.kernel)
        return share * np.einsum("ij,ijml->ml", np.asarray(kernel.P).astype(LONG), self.parts)

    def support(self, W):
        if self.Z is not None:  # products of the sums keep the digits that sums of products lose far from the origin
            sums = W @ self.Z.T
            return self.trace * max(largest_eigenvalue(sums @ sums.T), LONG(0))
        D = np.einsum("km,ijml,kl->ij", W, self.parts, W)
        return self.trace * max(largest_eigenvalue(0.5 * (D + D.T)), LONG(0))


def powers(n, degree):
    """Exponents in graded lexicographic order."""
    rows = [[0] * n]
    for total in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(n), total):
            rows.append([chosen.count(j) for j in range(n)])
    return np.array(rows)


def sorted_features(X, coordinates, degree, modulo_constants):
    """``U'Z(x)`` by the QR factorization of the binomial expansion with 60 digits, columns sorted as in the library."""
    center, scale, rows = coordinates.center, coordinates.scale, powers(X.shape[1], degree)
    order = np.argsort([np.flatnonzero(column)[-1] for column in coordinates.G.T], kind="stable")
    with mp.workdps(60):
        c, s = ([mp.mpf(v) for v in part.tolist()] for part in (center, scale))
        T = [[mp.fprod(map(binomial_term, row, rows[j].tolist(), c, s)) for j in order] for row in rows.tolist()]
        G = np.array([[LONG(str(v)) for v in row] for row in mp.qr(mp.matrix(T))[1].tolist()])
    signs = np.where(np.diagonal(G) * np.diagonal(coordinates.G[:, order]) < 0, -1, 1)
    z = (X.astype(LONG) - center.astype(LONG)) / scale.astype(LONG)
    z = np.stack([np.prod(z ** rows[j], axis=1) for j in order])
    z[np.argmin(order)] *= not modulo_constants
    return signs[:, None] * G @ z


def binomial_term(d, e, c, s):
    return math.comb(d, e) * c ** max(d - e, 0) * s**e


def tessellated_parts(family, X, x):
    """``integral of N_i(z, x) N_j(z, y) dz`` for all pairs of entries of N, from the definition: box by box."""
    low, high = (corner.astype(LONG) for corner in family.box.containing(X))
    basis = monomial_basis(X.shape[1], family.degree, family.z_degree)  # the order of the entries is the library's
    gammas, deltas = basis.gamma, basis.delta
    q, m = basis.q, len(X)
    both = np.maximum(x[:, None, :], x[None, :, :])
    parts = np.empty((2 * q, 2 * q, m, m), dtype=LONG)
    for i in range(q):
        for j in range(q):
            zeta = gammas[i] + gammas[j] + 1

            def integral(start, zeta=zeta):
                return np.prod((high**zeta - start**zeta) / zeta, axis=-1)

            factor = np.prod(x ** deltas[i], axis=1)[:, None] * np.prod(x ** deltas[j], axis=1)[None, :]
            g, at_x, at_y, whole = integral(both), integral(x)[:, None], integral(x)[None, :], integral(low)
            parts[i, j] = factor * g
            parts[i, q + j] = factor * (at_x - g)
            parts[q + i, j] = factor * (at_y - g)
            parts[q + i, q + j] = factor * (whole - at_x - at_y + g)
    return parts


def landmark_parts(family, gram_set):
    """Those of the landmarks between coefficients of the rows, which are what defines the family."""
    E = (gram_set.B @ gram_set.seen.view.basis.T).astype(LONG)
    if gram_set.modulo_constants:
        E = E - E.mean(axis=1, keepdims=True)
    L = gram_set.landmarks
    return E @ tessellated_parts(family, L, L.astype(LONG)) @ E.T


def form_above(W, K):
    """``sum over the rows w of w'Kw`` and what its terms may be rounded by: where they cancel, nothing is proven."""
    size = (np.abs(W) @ np.abs(K) * np.abs(W)).sum()
    return (W @ K * W).sum() + len(K) * np.finfo(LONG).eps * size


def largest_eigenvalue(D):
    """To the rounding of doubles, on a matrix of ordinary scale."""
    scale = np.abs(D).max()
    return scale * LONG(np.linalg.eigvalsh((D / scale).astype(float))[-1]) if scale > 0 else LONG(0)


def exact_set(problem):
    """The family of a problem on its points; None where there is no independent formula."""
    kinds = {"Candidates": ExactStack, "Span": ExactStack, "AllKernelMatrices": ExactAll}
    kind = ExactOne
    if not isinstance(problem, ck.FixedKernel):
        kind = kinds.get(type(problem.family).__name__, ExactMoments)
    X = None if problem.X is None else np.asarray(problem.X, dtype=float)
    try:
        return kind(problem, X, problem.m)
    except NotImplementedError:
        return None


# --- losses -------------------------------------------------------------------------------------------------------


def losses_of(loss, Y, F):
    """Losses of function values, entry by entry, times the weight of their sum."""
    if isinstance(loss, ck.Hinge):
        return LONG(loss.C) * np.maximum(0, 1 - Y * F)
    if isinstance(loss, ck.Logistic):
        return LONG(loss.C) * np.logaddexp(LONG(0), -Y * F)
    if isinstance(loss, ck.EpsilonInsensitive):
        return LONG(loss.C) * np.maximum(0, np.abs(F - Y) - LONG(loss.epsilon))
    if isinstance(loss, ck.Pinball):
        r = Y - F
        return LONG(loss.C) * np.maximum(LONG(loss.quantile) * r, (LONG(loss.quantile) - 1) * r)
    return (F - Y) ** 2


def half_norm(loss, norm):
    return (LONG(loss.lam) if isinstance(loss, ck.LeastSquares) else LONG(0.5)) * norm


def best_intercept(loss, y, weights, f, guess):
    """An intercept no worse than `guess`: any of them gives an upper bound."""
    r, s = y - f, weights > 0
    if isinstance(loss, ck.LeastSquares):
        trials = np.array([guess, (weights * r).sum() / weights.sum()])
    elif isinstance(loss, ck.Logistic):
        trials = guess + np.concatenate([[0], LONG(10) ** np.arange(-8, 1), -(LONG(10) ** np.arange(-8, 1))])
    else:
        kinks = {"EpsilonInsensitive": [r - LONG(getattr(loss, "epsilon", 0)), r + LONG(getattr(loss, "epsilon", 0))]}
        trials = np.concatenate([[guess], *(k[s] for k in kinks.get(type(loss).__name__, [r]))])
    values = [(weights * losses_of(loss, y, f + b)).sum() for b in trials]
    return trials[int(np.argmin(values))]


def upper_bound(problem, exact, solution, K=None):
    """The objective of the coefficients of a solution, in extended precision, and that of the values it returns."""
    loss, weights = problem.loss, problem.weights.astype(LONG)
    Y = raw_targets(problem)
    K = exact.gram(solution) if K is None else K
    W = np.zeros(Y.shape, dtype=LONG)
    if not getattr(getattr(problem, "gram_set", None), "is_factored", False):
        W[:, solution.function.support] = solution.function.W
    else:  # a function of features; its coefficients on rows are those that were certified
        point = problem.measured(solution.theta, solution.alpha)
        W[:] = point.multiples[:, None] * point.W
    points = np.arange(problem.m, dtype=float)[:, None] if problem.X is None else problem.X
    given = np.atleast_2d(np.asarray(solution.decision_function(points)).T).astype(LONG)
    total, returned = LONG(0), LONG(0)
    for w, y, values in zip(W, Y, given, strict=True):
        f, error = K @ w, len(w) * np.finfo(LONG).eps * (np.abs(K) @ np.abs(w))
        b = LONG(0)
        if loss.intercept:
            b = best_intercept(loss, y, weights, f, np.median((values - f)[weights > 0].astype(float)).astype(LONG))
        norm = half_norm(loss, w @ f + np.abs(w) @ error)
        ends = (losses_of(loss, y, f + b + change) for change in (-error, error))  # convex, so no more in between
        total += norm + (weights * np.maximum(*ends)).sum()
        returned += norm + (weights * losses_of(loss, y, values)).sum()
    rounding = float((np.abs(W) @ np.abs(K)).max()) if K.size else 0.0
    return total, returned, rounding


def raw_targets(problem):
    """As they were given."""
    return (problem.Y + center_of(problem)[:, None]).astype(LONG)


def center_of(problem):
    return problem.center if hasattr(problem, "center") else problem.offset


def lower_bound(problem, exact, point):
    """The best multiple of a dual point that is made feasible here; None where the support function is not known."""
    loss, weights = problem.loss, problem.weights.astype(LONG)
    Y = raw_targets(problem)
    W = np.array([feasible(loss, a.astype(LONG), y, weights) for a, y in zip(np.atleast_2d(point), Y, strict=True)])
    sigma = exact.support(W)
    if sigma is None:
        return None
    if isinstance(loss, ck.Logistic):
        cap = LONG(loss.C) * weights
        u = np.clip(np.divide(np.abs(W), cap, out=np.zeros_like(W), where=cap > 0), 0, 1)
        entropy = np.where((u > 0) & (u < 1), -u * np.log(np.where(u > 0, u, 1)), 0)
        entropy += np.where((u > 0) & (u < 1), -(1 - u) * np.log1p(-np.where(u < 1, u, 0)), 0)
        return (cap * entropy).sum() - sigma / 2
    if loss.intercept and loss.is_of_differences:
        Y = Y - Y[:, :1]  # sums of w are 0 to the last digits only
    linear = (W * Y).sum() - LONG(getattr(loss, "epsilon", 0)) * np.abs(W).sum()
    scale, curvature = LONG(1), sigma / 2
    if isinstance(loss, ck.LeastSquares):
        scale, counted = 2 * LONG(loss.lam), weights > 0
        curvature += LONG(loss.lam) / 2 * (W[:, counted] ** 2 / weights[counted]).sum()
    s = min(LONG(1), max(LONG(0), linear / (2 * curvature))) if curvature > 0 else LONG(1)
    return scale * (s * linear - s * s * curvature)


def feasible(loss, alpha, y, weights):
    """Coefficients w in the box of the loss, summing to 0 (in extended precision) where there is an intercept."""
    if isinstance(loss, ck.LeastSquares):
        w = np.where(weights > 0, alpha, 0)
        return w - weights * (w.sum() / weights.sum()) if loss.intercept else w
    cost = LONG(loss.C) * weights
    if isinstance(loss, ck.Hinge | ck.Logistic):
        w = y * np.clip(alpha, 0, cost)
    elif isinstance(loss, ck.Pinball):
        w = np.clip(alpha, -(1 - LONG(loss.quantile)) * cost, LONG(loss.quantile) * cost)
    else:
        w = np.clip(alpha, -cost, cost)
    if not loss.intercept:
        return w
    up, down = w[w > 0].sum(), -w[w < 0].sum()
    least = min(up, down)
    return np.where(w > 0, w * (least / up if up > 0 else 0), w * (least / down if down > 0 else 0))
