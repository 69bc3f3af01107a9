"""Straightening a kink by an inner rotation.

A tensor-product Matern kernel of order 1 is at ease with kinks that run along a coordinate axis, and at a loss with
one that runs along the diagonal. A concatenation f o g with an affine inner map g can turn the plane first. Nobody
tells it by which angle: it is learned together with f.

    python examples/12_straightening_a_kink.py [--quick] [--out figures]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from convexkernels import ConcatenatedKernelInterpolator, DecisionFunction, Interpolation, Polynomial, TensorMatern
from convexkernels.datasets import inverse_distance
from convexkernels.kernels import Concatenated, KernelMap
from convexkernels.losses.fit import fit
from convexkernels.plotting.concatenated import (
    ErrorMapDisplay,
    GridTransformationDisplay,
    SurfaceDisplay,
    plane_grid,
)

OUTER = TensorMatern(order=1, smoothing=0.01)


def axis_aligned(X):
    """g1 of the paper: the kink is the line x = 0."""
    return 1.0 / (0.1 + np.abs(X[:, 0]))


def interpolant(kernel, X, y):
    """The interpolant of least norm for a fixed kernel."""
    found = fit(Interpolation(), kernel(X), y[None, :], np.ones(len(y)))
    return DecisionFunction.of_kernel(kernel, X, found.W, found.b, single=True).decision_function


def error(f, truth):
    grid = plane_grid()
    return float(np.sqrt(np.mean((f(grid) - truth(grid)) ** 2)))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    parser.add_argument("--quick", action="store_true", help="80 points and 3 starts instead of 200 and 8")
    options = parser.parse_args(argv)
    n_points, n_restarts = (80, 3) if options.quick else (200, 8)

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_points, 2))

    # 1. A kink along an axis: the kernel is right, the interpolant is good.
    straight = interpolant(OUTER, X, axis_aligned(X))
    print(f"kink along an axis, one layer:      error {error(straight, axis_aligned):.3f}")

    # 2. The same kink along the diagonal: the kernel is wrong.
    y = inverse_distance(X)
    diagonal = interpolant(OUTER, X, y)
    print(f"kink along the diagonal, one layer: error {error(diagonal, inverse_distance):.3f}")

    # 3. Rotate by 45 degrees first, as somebody who knows the answer would. A linear map is a combination of the
    #    translates of the linear part of the kernel (x'y + 1): these two centers span it.
    c = np.sqrt(0.5)
    centers = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    rotation = KernelMap(Polynomial(1), centers, [[c, c], [-c, c], [0.0, -2.0 * c]])
    told = interpolant(Concatenated(OUTER, [rotation]), X, y)
    print(f"after a rotation by 45 degrees:     error {error(told, inverse_distance):.3f}")

    # 4. Learn the inner map.
    model = ConcatenatedKernelInterpolator(
        [OUTER, Polynomial(degree=1)], n_restarts=n_restarts, normalize_y=False, random_state=0
    ).fit(X, y)
    print(f"after the map that is learned:      error {error(model.predict, inverse_distance):.3f}")
    print(f"certificate: {model.solution_.certificate}")

    # What has been learned? An affine map is known from three images.
    origin, first, second = model.transform([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    A = np.array([first - origin, second - origin]).T
    along, across = np.linalg.norm(A @ [c, c]), np.linalg.norm(A @ [c, -c])
    print(f"a step across the kink becomes {across:.2f} times as long, one along it {along:.2f} times;")
    steps = np.abs(A @ [c, -c]) / across
    print(f"a step across the kink moves g by {steps[0]:.2f} and {steps[1]:.2f} of its length in the two coordinates.")

    save_figures(options.out, X, straight, diagonal, told, model)
    return model


def save_figures(folder, X, straight, diagonal, told, model):
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    surfaces = {
        "(a) kink along an axis": straight,
        "(b) kink along the diagonal": diagonal,
        "(c) rotated by 45 degrees": told,
        "(d) inner map learned": model.predict,
    }
    SurfaceDisplay.from_functions(surfaces, points=X).plot().figure_.savefig(folder / "interpolants.png", dpi=110)
    errors = {"one layer": diagonal, "rotated by 45 degrees": told, "inner map learned": model.predict}
    display = ErrorMapDisplay.from_functions(errors, inverse_distance, points=X).plot()
    display.figure_.savefig(folder / "errors.png", dpi=110)
    display = GridTransformationDisplay.from_maps({"learned inner map": model.transform}, inverse_distance).plot()
    display.figure_.savefig(folder / "inner_map.png", dpi=110)
    print(f"figures are in {folder}")


if __name__ == "__main__":
    main()
