"""The adjoint of P -> K(P) for tessellated kernels: of one vector, of a matrix, and row by row.

The parts are those of :mod:`convexkernels.bases.tessellation.gram`, each the transpose of what is there. Arguments
`modulo_constants` promise that vectors, or rows of matrices, sum to 0, and use it exactly; `volumes` are those of all
pairs of points where they are known.
"""

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.bases.tessellation.gram import BoxPoints, Tessellation
from convexkernels.threads import in_parts


def adjoint(
    t: Tessellation, w: Array, x: BoxPoints, *, modulo_constants: bool = False, volumes: Array | None = None
) -> Array:
    """The matrix D with ``<D, P> = w' K(P) w`` for every P, shape (2q, 2q)."""
    index, sums_of = t.basis.x_index, t.basis.sum_index
    support = np.flatnonzero(w)
    points, w = x.take(support), w[support]
    weighted = points.psi * w
    table = weighted @ _pair_sums(t, w, points, points, None if volumes is None else (volumes, support))
    v = weighted.sum(axis=1)
    if modulo_constants:
        v[0] = 0.0
    reach = weighted @ points.reach.T  # (n_delta, n_sums): sum_k w_k x_k^delta T(x_k, b, s + 1)
    from_x = reach[index[:, None], sums_of] * v[index][None, :]
    return _assembled(t, table, from_x, np.outer(v, v))


def pullback(
    t: Tessellation, M: Array, x: BoxPoints, *, modulo_constants: bool = False, volumes: Array | None = None
) -> Array:
    """The matrix D with ``<D, P> = <M, K(P)>`` for every P and a symmetric matrix M, shape (2q, 2q).

    O(m^2 n) without z in the monomials.
    """
    basis, index, n_delta = t.basis, t.basis.x_index, t.basis.width[0]
    sums = np.empty((len(M), int(basis.width.sum())))
    _add_shifted(t, M, x, x, sums)
    sums[:, :n_delta] = (M * (t.volumes(x, x) if volumes is None else volumes)) @ x.psi.T
    right = x.psi @ M
    if modulo_constants:
        right[0] = 0.0
    reach = np.array([(x.psi * row) @ right.T for row in x.reach])  # (n_sums, n_delta, n_delta)
    pairs = x.psi @ right.T
    if modulo_constants:
        pairs[0] = 0.0
    return _assembled(t, x.psi @ sums, reach[basis.sum_index, index[:, None], index[None, :]], pairs)


def _assembled(t: Tessellation, table: Array, from_x: Array, pairs: Array) -> Array:
    """D from the sums over pairs, its part in the box from x, and the sums of products of monomials."""
    index, sums_of = t.basis.x_index, t.basis.sum_index
    g = _symmetric(table[index[:, None], t.tables[-1][sums_of] + index[None, :]])
    whole = t.whole[sums_of] * pairs[index[:, None], index[None, :]]
    return np.block([[g, from_x - g], [from_x.T - g, g - from_x - from_x.T + whole]])


def derivative(t: Tessellation, w: Array, x: BoxPoints, rows: Index, *, modulo_constants: bool = False) -> Array:
    """Derivative of ``(K(P) w)_rows`` in P, shape (n_rows, 2q, 2q): ``<out[r], dP> = (K(dP) w)_r``, symmetric in P.

    With `modulo_constants`, up to a constant common to all rows.
    """
    index, sums_of = t.basis.x_index, t.basis.sum_index
    support = np.flatnonzero(w)
    columns, w = x.take(support), w[support]
    here = x.take(rows)
    psi = here.psi[index].T  # (n_rows, q)
    varying = psi.copy()
    weighted = columns.psi * w
    v = weighted.sum(axis=1)
    if modulo_constants:
        v[0] = 0.0
        varying[:, index == 0] = 0.0
    at = t.tables[-1][sums_of] + index[None, :]
    g = _symmetric(psi[:, :, None] * _pair_sums(t, w, here, columns, None)[:, at])
    reach = (weighted @ columns.reach.T)[index[:, None], sums_of]
    from_x = psi[:, :, None] * here.reach.T[:, sums_of] * v[index][None, None, :] + reach[None] * varying[:, None, :]
    whole = _symmetric(t.whole[sums_of][None] * varying[:, :, None] * v[index][None, None, :])
    half = 0.5 * from_x - g
    last = g - _symmetric(from_x) + whole
    top = np.concatenate([g, half], axis=2)
    return np.concatenate([top, np.concatenate([np.swapaxes(half, 1, 2), last], axis=2)], axis=1)


def _pair_sums(t: Tessellation, w: Array, x: BoxPoints, y: BoxPoints, known: tuple[Array, Index] | None) -> Array:
    """``out[i, offset[s] + e] = sum_j w_j y_j^delta_e T(max(x_i, y_j), b, s + 1)``; `known`: volumes for x = y."""
    weighted = y.psi * w
    sums = np.empty((x.psi.shape[1], int(t.basis.width.sum())))
    _add_shifted(t, w[None, :], x, y, sums)
    for start in range(0, len(sums), 1024):
        rows = slice(start, min(len(sums), start + 1024))
        if known is None:
            part = t.volumes(x.take(np.arange(rows.start, rows.stop)), y)
        else:
            volumes, support = known
            part = volumes[np.ix_(support[rows], support)]
        sums[rows, : t.basis.width[0]] = part @ weighted.T
    return sums


def _add_shifted(t: Tessellation, w: Array, x: BoxPoints, y: BoxPoints, out: Array) -> None:
    """The sums of `_pair_sums` with z in their monomials."""
    if len(t.basis.sums) > 1:
        from convexkernels.bases.tessellation.tiles import shifted_adjoint

        arguments = (x.columns, y.columns, t.upper, *t.tables, w, y.psi, out)
        in_parts(shifted_adjoint, len(out), *arguments)


def _symmetric(A: Array) -> Array:
    return 0.5 * (A + np.swapaxes(A, -1, -2))
