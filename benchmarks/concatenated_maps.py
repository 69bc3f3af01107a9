"""Is the search to blame for the larger error of Mat o Poly (p = 1) on h1 in Table 1? Values of (Int) at known maps.

    python -m benchmarks.concatenated_maps [--draws 3] [--restarts 16]

h1(x, y) = 1 / (0.1 + |x - y|) is a function of one coordinate after a rotation by 45 degrees. For every draw of the 100
points, (Int) is evaluated at the linear maps (s (x - y), t (x + y)) / sqrt(2) with s and t on a fine geometric grid,
and beside the answer of the search: an answer with a lower value than all of them is not the search's failure.
"""

from __future__ import annotations

import argparse

import numpy as np

from convexkernels import Concatenations, DecisionFunction, Interpolation, OuterLearning, Polynomial, TrainingValue
from convexkernels.losses.fit import fit
from models.concatenated import MATERN, draw, error, test_grid

SCALES = np.geomspace(0.02, 100.0, 60)
ROTATION = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)


def at_maps(X, y):
    """Value of (Int) and error on the test grid, for every pair of scales."""
    points, grid = X @ ROTATION, test_grid()[::7] @ ROTATION
    truth = 1.0 / (0.1 + np.abs(np.sqrt(2.0) * grid[:, 0]))
    values, errors = np.empty((2, len(SCALES), len(SCALES)))
    for i, s in enumerate(SCALES):
        for j, t in enumerate(SCALES):
            images = points * [s, t]
            found = fit(Interpolation(), MATERN(images), y[None, :], np.ones(len(y)))
            h = DecisionFunction.of_kernel(MATERN, images, found.W, found.b, single=True)
            # The linear map in the space of 1 + x'z: its squared norm is that of its matrix.
            values[i, j] = found.value + s * s + t * t
            errors[i, j] = np.sqrt(np.mean((h.decision_function(grid * [s, t]) - truth) ** 2))
    return values, errors


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--restarts", type=int, default=16)
    options = parser.parse_args(argv)
    print("| draw | found: value, error | least value of the maps, its error | least error of the maps, its value |")
    print("|---|---|---|---|")
    for seed in range(options.draws):
        X, y = draw("h1", seed, 100)
        problem = OuterLearning(
            Concatenations([MATERN, Polynomial(1)], widths=2), Interpolation(), TrainingValue(), X, y
        )
        found = problem.solve("restarts", restarts=options.restarts, random_state=seed)
        values, errors = at_maps(X, y)
        low, near = np.argmin(values), np.argmin(errors)
        cells = [
            f"{found.value:.1f}, {error(found.decision_function(test_grid()), 'h1'):.3f}",
            f"{values.flat[low]:.1f}, {errors.flat[low]:.3f}",
            f"{errors.flat[near]:.3f}, {values.flat[near]:.1f}",
        ]
        print(f"| {seed} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
