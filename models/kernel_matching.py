"""Problems (20) and (21): how closely sums of Gaussians, GPK(d) and TK(d) imitate the optimal kernel matrix. Figure 2.

    minimize over k in the cone   mean |K - K*|  (20)   or   max |K - K*|  (21),     K* = m v v' / |v|^2 (Theorem 10)

on 20 points of the spiral. A sum of Gaussians is positive everywhere and half of K* is -1: its distance is at least
0.5 in (20) and exactly 1 in (21). GPK(d) reaches every matrix once its monomials separate the points. Every distance
is bracketed by a dual certificate. The tessellated kernels have no z in their monomials (z_degree = 0), so that P
grows with the degree as it does for GPK; --with-z has all of them, as the paper defines TK(d), and a picture of its
own (a P of 660 rows at degree 7, a minute for each distance). The points fill [-1/2, 1/2]^2, where monomials tell
more apart than in [0, 1]^2; which functions they span is the same. As in the figure, the Gaussians get as many
bandwidths as TK has decisions, 21, 78, 210, ... without z and 55, 465, 2485, ... with it, but no more than 400.

    python -m models.kernel_matching [--quick] [--with-z] [--degree 7] [--out figures]
"""

import argparse
from math import comb
from pathlib import Path

import numpy as np

import convexkernels as ck
from convexkernels.datasets import make_spiral
from convexkernels.plotting.canvas import color, legend, new_axes, plain_ticks

MOST_BANDWIDTHS = 400
BOX = ck.Box([-1.0, -1.0], [1.0, 1.0])


def classes(degree, z_degree):
    # P has two rows per monomial, of the two features of x or of those and the two of z.
    rank = 2 * comb((2 if z_degree == 0 else 4) + degree, degree)
    count = min(rank * (rank + 1) // 2, MOST_BANDWIDTHS)
    widths = np.geomspace(0.01, 10.0, count)
    gaussians = [ck.Gaussian(float(width) ** -2) for width in widths]
    return {
        "Gaussians": ck.Candidates(gaussians, normalize="none", allow_duplicates=True),
        "GPK": ck.GeneralizedPolynomial(degree),
        "TK": ck.Tessellated(degree, z_degree, box=BOX),
    }


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="degrees up to 2")
    parser.add_argument("--with-z", action="store_true", help="z in the monomials of TK, as in the paper")
    parser.add_argument("--degree", type=int, default=7, help="largest degree")
    parser.add_argument("--out", type=Path, default=Path("figures"))
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)

    X, y = make_spiral(20, random_state=0)
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)) - 0.5
    target, _ = ck.optimal_kernel_matrix(y)
    degrees = range(1, 1 + (2 if options.quick else options.degree))
    figure = None
    for row, (norm, title) in enumerate([("one", "(20) mean"), ("infinity", "(21) maximum")]):
        found = {}
        for degree in degrees:
            for name, family in classes(degree, None if options.with_z else 0).items():
                match = ck.KernelMatching(family, X, target, norm).solve()
                found.setdefault(name, []).append(match.value)
                print(f"{title:14s} degree {degree}  {name:10s} {match.certificate}  {match.seconds:6.2f} s")
        if figure is None:
            axes = new_axes(None, size=(7.4, 6.5), rows=2)
            figure = axes[0].figure
        for k, (name, values) in enumerate(found.items()):  # families may reach the same value: one inside the other
            style = {"marker": "os^"[k], "linestyle": ("-", "--", ":")[k], "markersize": 11 - 3 * k}
            axes[row].plot(list(degrees), values, color=color(k), label=name, **style)
        axes[row].axhline(0.5 if norm == "one" else 1.0, color="0.6", lw=0.8, ls="--", label="bound for Gaussians")
        axes[row].set_ylabel(title + " of |K - K*|")
        axes[row].set_ylim(-0.06, 1.08)
    legend(axes[0])
    axes[1].set_xlabel("degree of the monomials")
    plain_ticks(axes[1].xaxis, at=degrees)
    name = "kernel_matching_with_z" if options.with_z else "kernel_matching"
    figure.savefig(options.out / f"{name}.png", dpi=150)


if __name__ == "__main__":
    main()
