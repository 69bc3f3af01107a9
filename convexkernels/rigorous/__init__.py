"""Bounds that hold in exact arithmetic.

The statement that is proven is about real numbers: the optimum of the problem whose points, targets, weights and
parameters are the given doubles, with the kernels, norms and losses of mathematics. The proof trusts this model of
arithmetic and nothing else of what was computed before:

- sums, products, quotients and square roots of doubles are rounded correctly (IEEE 754), in any order of summation,
  with or without fused multiplications, on any number of threads;
- ``exp`` is right to one unit in the last place, which numpy's and the C library's are; four are charged;
- what underflows is smaller than 1e-290 (numbers beyond 1e-40 to 1e40 are refused).

Every number carries a bound of its error (`rounding`), made from ``gamma_n = n u / (1 - n u)`` and sums of absolute
values. Kernel entries are enclosed (`kernels`, `compositions`, `tessellated`; `stored` says what is known of matrices
that are in memory already), dual points are moved until they are feasible exactly, in integers (`dual`), matrix
parameters are replaced by ``G G'`` for a matrix of doubles G, which is positive semidefinite whatever rounding did
(`matrices`), and largest eigenvalues are proven by factorizations (`rounding`).
"""
