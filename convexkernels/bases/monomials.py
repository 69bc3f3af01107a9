"""Indexing of the monomials Z(z, x) = all z^gamma x^delta of bounded degree."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import comb, prod

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import MemoryLimitError
from convexkernels.validation import available_memory, check_whole_number

# Products of two residues fit into 64 bits, and of powers of 2, of which doubles are sums, only huge ones are 1: modulo
# 2^31 - 1 2^31 is. And the binary digits of a double.
PRIMES, MANTISSA = (1836311951, 1618033999), 53


def exponents(n: int, degree: int) -> Index:
    """Exponents of all monomials in `n` variables up to `degree`, graded lexicographically, one in a row.

    Row 0 is the constant; within a degree, powers of earlier variables come first, so those up to any smaller degree
    are a prefix.
    """
    rows = []
    for total in range(degree + 1):
        for variables in combinations_with_replacement(range(n), total):
            row = np.zeros(n, dtype=np.int64)
            np.add.at(row, list(variables), 1)
            rows.append(row)
    return np.array(rows).reshape(len(rows), n)


def monomials(X: Array, powers: Index) -> Array:
    """Values ``x^delta`` for every row of `powers`, shape (n_monomials, m), degree by degree."""
    values = np.empty((powers.shape[0], X.shape[0]))
    place = {tuple(row): i for i, row in enumerate(powers.tolist())}
    for i, row in enumerate(powers.tolist()):
        used = [k for k, power in enumerate(row) if power]
        if not used:
            values[i] = 1.0
            continue
        row[used[-1]] -= 1
        np.multiply(values[place[tuple(row)]], X[:, used[-1]], out=values[i])
    return values


def exact_rank(X: Array, powers: Index) -> int:
    """Rank of :func:`monomials` in exact arithmetic, for the points that the doubles `X` are.

    The larger one of the ranks modulo two primes: neither is above the rank over the rationals, and determinants that
    are not 0 there are multiples of both primes by chance only, or where points are made for it.
    """
    first = _rank_modulo(PRIMES[0], X, powers)
    return first if first == min(len(powers), len(X)) else max(first, _rank_modulo(PRIMES[1], X, powers))


def _rank_modulo(prime: int, X: Array, powers: Index) -> int:
    fractions, shifts = np.frexp(X)
    units = {int(s): pow(2, int(s) - MANTISSA, prime) for s in np.unique(shifts)}
    residues = np.ldexp(fractions, MANTISSA).astype(np.int64) % prime
    residues = residues * np.vectorize(units.get, otypes=[np.int64])(shifts) % prime
    rows = np.ones((len(powers), len(X)), dtype=np.int64)
    for k, column in enumerate(residues.T):
        power = np.ones_like(column)
        for p in range(int(powers[:, k].max(initial=0)) + 1):
            rows[powers[:, k] == p] = rows[powers[:, k] == p] * power % prime
            power = power * column % prime
    rank = 0
    for column in range(len(X)):
        filled = np.flatnonzero(rows[rank:, column])
        if filled.size:
            rows[[rank, rank + filled[0]]] = rows[[rank + filled[0], rank]]
            pivot = rows[rank] * pow(int(rows[rank, column]), -1, prime) % prime
            rows[rank + 1 :] = (rows[rank + 1 :] - rows[rank + 1 :, column, None] * pivot % prime) % prime
            rank += 1
    return rank


def expansion(powers: Index, center: Array, scale: Array) -> Array:
    """T with ``x^delta = sum_e T[delta, e] z^e`` for ``x = center + scale z``, by the binomial theorem.

    `powers` are all exponents up to some degree; T has shape (n_monomials, n_monomials) and the type of `center`.
    """
    place = {tuple(row): i for i, row in enumerate(powers.tolist())}
    T = np.zeros((len(powers), len(powers)), dtype=center.dtype)
    for row, i in place.items():
        for lower in product(*(range(power + 1) for power in row)):
            terms = zip(row, lower, center, scale, strict=True)
            T[i, place[lower]] = prod(comb(d, e) * c ** (d - e) * s**e for d, e, c, s in terms if d)
    return T


def count_monomials(n: int, degree: int, z_degree: int | None = None) -> int:
    """Number q of monomials ``z^gamma x^delta``, |gamma| + |delta| <= degree and |gamma| <= z_degree.

    With ``z_degree=None`` that is ``binom(2n + degree, degree)`` ([CP20 Section 5]; the
    count printed in their Section 7 is another number), with ``z_degree=0`` ``binom(n + degree, degree)``.
    """
    top = degree if z_degree is None else min(z_degree, degree)
    return sum(comb(n + g - 1, g) * comb(n + degree - g, degree - g) for g in range(top + 1))


@dataclass(frozen=True, eq=False)
class MonomialBasis:
    """The monomials Z(z, x) of a tessellated kernel, and the tables its integrals need.

    With tasks every monomial is there once for each, times the indicator of the task: functions of (x, task) with the
    same integrals over z.

    Attributes
    ----------
    n, degree, z_degree : int
    gamma, delta : ndarray of int, shape (q, n)
        Exponents of z and of x of every monomial: graded, powers of x before powers of z, as in the
        paper's appendix (1, x1, x2, z1, z2 for n = 2, degree 1).
    z_powers : ndarray of int, shape (n_gamma, n)
        The distinct exponents of z; `z_index` (q,) points into it.
    x_powers : ndarray of int, shape (n_delta, n)
        The distinct exponents of x; `x_index` (q,) points into it: with T tasks T times the exponent, plus the task.
    sums : ndarray of int, shape (n_sums, n)
        The distinct ``gamma_i + gamma_j``, row 0 being 0; ``pair_sum[g, h]`` (n_gamma, n_gamma)
        points into it.
    parent, variable, power : ndarray of int, shape (n_sums,)
        ``sums[s] = sums[parent[s]] + power[s] * e_variable[s]``, with ``parent[s] < s``: integrals over a
        box are products over coordinates, built along this tree.
    width : ndarray of int, shape (n_sums,)
        How many of the leading `x_powers`, times tasks, can meet ``sums[s]`` in one pair of monomials.
    tasks : int or None
        How many tasks there are.
    """

    n: int
    degree: int
    z_degree: int
    gamma: Index
    delta: Index
    z_powers: Index
    x_powers: Index
    z_index: Index
    x_index: Index
    sums: Index
    pair_sum: Index
    parent: Index
    variable: Index
    power: Index
    width: Index
    tasks: int | None = None

    @property
    def q(self) -> int:
        """Number of monomials; P is (2q, 2q)."""
        return self.gamma.shape[0]

    @property
    def sum_index(self) -> Index:
        """Index into `sums` for every pair of monomials, shape (q, q)."""
        return self.pair_sum[np.ix_(self.z_index, self.z_index)]


def monomial_basis(n: int, degree: int, z_degree: int | None = None, tasks: int | None = None) -> MonomialBasis:
    """The (cached) basis of `n` features: |gamma| + |delta| at most `degree`, |gamma| at most `z_degree`.

    With ``z_degree=0`` no monomial contains z: q falls from binom(2n + degree, degree) to binom(n + degree, degree) and
    a single integral remains. With `tasks` q is that many times as large. What would not fit the memory, the (2q, 2q)
    matrix P and its work space, is refused.
    """
    check_whole_number("n", n, low=1)
    check_whole_number("degree", degree, low=0)
    if z_degree is not None:
        check_whole_number("z_degree", z_degree, low=0)
    copies = 1 if tasks is None else check_whole_number("tasks", tasks, low=1)
    top = degree if z_degree is None else min(int(z_degree), int(degree))
    q = copies * count_monomials(n, degree, top)
    # P, its gradient, an eigendecomposition and trial points: about ten (2q, 2q) matrices.
    needed = 10 * 8.0 * (2 * q) ** 2
    if needed > available_memory():
        hint = copies * count_monomials(n, degree, 0)
        of = "" if tasks is None else f" of {tasks} tasks"
        raise MemoryLimitError(
            f"degree={degree} with z_degree={top} on {n} features{of} has q = {q} monomials, and P would be "
            f"{2 * q} x {2 * q} ({needed / 2**30:.1f} GiB with its work space). "
            f"Use z_degree=0 (q = {hint}) or a smaller degree."
        )
    basis = _build(int(n), int(degree), top)
    return basis if tasks is None else _in_tasks(basis, copies)


@lru_cache(maxsize=64)
def _build(n: int, degree: int, z_degree: int) -> MonomialBasis:
    z_powers = exponents(n, z_degree)
    x_powers = exponents(n, degree)
    z_total, x_total = z_powers.sum(axis=1), x_powers.sum(axis=1)
    pairs = [
        (z_total[g] + x_total[e], g, e)
        for g in range(len(z_powers))
        for e in range(len(x_powers))
        if z_total[g] + x_total[e] <= degree
    ]
    pairs.sort()
    z_index = np.array([g for _, g, _ in pairs])
    x_index = np.array([e for _, _, e in pairs])
    sums = exponents(n, 2 * z_degree)
    place = {tuple(row): s for s, row in enumerate(sums.tolist())}
    pair_sum = np.array([[place[tuple(row)] for row in (g + z_powers).tolist()] for g in z_powers])
    parent, variable, power = (np.zeros(len(sums), dtype=np.int64) for _ in range(3))
    for s, row in enumerate(sums.tolist()):
        used = [k for k, value in enumerate(row) if value]
        if used:
            variable[s], power[s] = used[-1], row[used[-1]]
            row[used[-1]] = 0
            parent[s] = place[tuple(row)]
    # The smaller of the two |gamma| that add up to |sum| is at least |sum| - z_degree.
    room = degree - np.maximum(0, sums.sum(axis=1) - z_degree)
    width = np.array([comb(n + r, r) for r in room])
    return MonomialBasis(
        n=n, degree=degree, z_degree=z_degree, gamma=z_powers[z_index], delta=x_powers[x_index],
        z_powers=z_powers, x_powers=x_powers, z_index=z_index, x_index=x_index, sums=sums,
        pair_sum=pair_sum, parent=parent, variable=variable, power=power, width=width,
    )  # fmt: skip


def _in_tasks(basis: MonomialBasis, tasks: int) -> MonomialBasis:
    """Every monomial once for each task, in the order of the monomials: leading `x_powers` stay leading ones."""
    repeated = {name: getattr(basis, name).repeat(tasks, axis=0) for name in ("gamma", "delta", "z_index")}
    x_index = (basis.x_index[:, None] * tasks + np.arange(tasks)).ravel()
    return replace(basis, **repeated, x_index=x_index, width=tasks * basis.width, tasks=tasks)
