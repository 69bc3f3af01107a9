"""Concatenated interpolation and regression: Tables 1 and 2 of Bohn, Griebel and Rieger.

    (Int)   min over g   y' Q(g)^-1 y + |g|^2                      Q(g) = K_1(g(X), g(X))
    (Reg)   min over g   lam y' (Q(g) + lam I)^-1 y + mu |g|^2     g in the space of K_2 diag(1, 1)

for h1(x, y) = 1 / (0.1 + |x - y|) and h2(x, y) = 1{xy > 3/20} on [-1, 1]^2 from 100 uniform points with noise
0.01; the error is the root mean square on a grid of 101 x 101 points. The paper shows one draw of the points,
this script the median and the quartiles of many.

    python -m models.concatenated                 both tables, 20 draws, 64 starts, in the choice of lam and mu, too
    python -m models.concatenated --table 1 --pairs "Mat o Poly" --functions h1       a part of Table 1
    python -m models.concatenated --figures       Figures 3 to 11: error maps, and what inner maps do to a grid
    python -m models.concatenated --quick         one draw of 40 points, two starts, a coarse grid

Draws are appended to OUT/concatenated.jsonl as they are done; what is there is not run again.

What is printed inconsistently in the paper, and how it is read here: the Matern outer kernel of Mat o Poly has s = 1
(captions of Figures 3, 4, 7 and 8), not s = 2 (text), which Mat o Gauss has (Figures 5 and 9); the two columns of
Mat-TP o Poly are the degrees 1 and 2, not widths sigma; (lam, mu) is the pair with the least held-out error, because
the "smallest function value of (Reg)" always belongs to the smallest pair (`--choice printed` takes that one). Matern
kernels of order 1 have kinks, which the library rounds off over a thousandth of the spread of the points.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from convexkernels import (
    Concatenations,
    ConvexKernelsWarning,
    DecisionFunction,
    Gaussian,
    Interpolation,
    LeastSquares,
    Loss,
    Matern,
    OuterLearning,
    Polynomial,
    TensorMatern,
    TrainingValue,
    warm_up,
)
from convexkernels.datasets import inverse_distance, step
from convexkernels.kernels import Kernel
from convexkernels.losses.fit import fit
from convexkernels.solvers.nonconvex.paths import PAPER_GRID, select_weights

NOISE = 0.01

# The paper's kernels carry the factor 2^(nu - 1) Gamma(nu), sqrt(pi / 2) for orders 1 and 2.
FACTOR = np.sqrt(np.pi / 2)
ROUGH, MATERN = FACTOR * Matern(order=1), FACTOR * Matern(order=2)
TENSOR = FACTOR**2 * TensorMatern(order=1)
NARROW = Gaussian(gamma=0.5 / 0.1**2)


def gaussian(sigma: float) -> Gaussian:
    return Gaussian(gamma=0.5 / sigma**2)


FUNCTIONS = {"h1": inverse_distance, "h2": step}

# pair -> (outer kernel, {column: inner kernel})
PAIRS: dict[str, tuple[Kernel, dict[str, Kernel]]] = {
    "Mat o Poly": (ROUGH, {"p=1": Polynomial(1), "p=2": Polynomial(2)}),
    "Mat-TP o Poly": (TENSOR, {"p=1": Polynomial(1), "p=2": Polynomial(2)}),
    "Mat o Gauss": (MATERN, {"sigma=10": gaussian(10.0), "sigma=1": gaussian(1.0)}),
    "Gauss o Poly": (NARROW, {"p=1": Polynomial(1), "p=2": Polynomial(2)}),
}

# The paper's numbers: (table, pair, function) -> single layer, first and second inner kernel.
PAPER = {
    (1, "Mat o Poly", "h1"): (0.9184, 0.1283, 0.1282),
    (1, "Mat o Poly", "h2"): (0.1571, 0.1517, 0.1500),
    (1, "Mat-TP o Poly", "h1"): (1.2548, 0.1462, 0.3693),
    (1, "Mat-TP o Poly", "h2"): (0.1683, 0.1316, 0.1100),
    (1, "Mat o Gauss", "h1"): (0.9562, 0.8013, 0.4153),
    (1, "Mat o Gauss", "h2"): (0.2142, 0.2003, 0.1534),
    (1, "Gauss o Poly", "h1"): (1.0894, 0.3662, 0.3882),
    (1, "Gauss o Poly", "h2"): (0.4179, 0.2980, 0.2495),
    (2, "Mat o Poly", "h1"): (0.9184, 0.1436, 0.1288),
    (2, "Mat o Poly", "h2"): (0.1564, 0.1579, 0.1422),
    (2, "Mat-TP o Poly", "h1"): (1.2352, 0.1379, 0.3553),
    (2, "Mat-TP o Poly", "h2"): (0.1743, 0.1752, 0.1727),
    (2, "Mat o Gauss", "h1"): (0.9184, 0.1930, 0.4041),
    (2, "Mat o Gauss", "h2"): (0.1564, 0.1570, 0.1462),
    (2, "Gauss o Poly", "h1"): (1.3998, 0.2021, 0.1659),
    (2, "Gauss o Poly", "h2"): (0.3133, 0.1593, 0.1582),
}


@dataclass(frozen=True)
class Size:
    """How much of the experiment is run."""

    n_draws: int
    n_points: int
    n_restarts: int
    n_restarts_of_choice: int
    grid: tuple[float, ...]
    n_splits: int
    choice: str
    n_jobs: int


def test_grid() -> np.ndarray:
    axis = np.linspace(-1.0, 1.0, 101)
    return np.column_stack([part.ravel() for part in np.meshgrid(axis, axis, indexing="ij")])


def draw(function: str, seed: int, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_points, 2))
    return X, FUNCTIONS[function](X) + NOISE * rng.normal(size=n_points)


def error(prediction: np.ndarray, function: str) -> float:
    return float(np.sqrt(np.mean((prediction - FUNCTIONS[function](test_grid())) ** 2)))


def least_squares(lam: float) -> LeastSquares:
    return LeastSquares(lam, intercept=False)


def single_layer(outer: Kernel, X: np.ndarray, y: np.ndarray, loss: Loss) -> DecisionFunction:
    found = fit(loss, outer(X), y[None, :], np.ones(len(y)))
    return DecisionFunction.of_kernel(outer, X, found.W, found.b, single=True)


def error_of(h: Any, function: str) -> float:
    return error(h.decision_function(test_grid()), function)


def functions(table: int, pair: str, function: str, seed: int, size: Size) -> dict[str, Any]:
    """The single layer and the solutions of both concatenations, by their columns."""
    outer, inners = PAIRS[pair]
    X, y = draw(function, seed, size.n_points)
    losses = [Interpolation()] if table == 1 else [least_squares(lam) for lam in PAPER_GRID]
    # The paper grants the single layer the lam that is best on the test grid.
    found = {"single": min((single_layer(outer, X, y, loss) for loss in losses), key=lambda h: error_of(h, function))}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexKernelsWarning)
        for column, inner in inners.items():
            problem = OuterLearning(Concatenations([outer, inner], widths=2), Interpolation(), TrainingValue(), X, y)
            if table == 2:
                problem = with_chosen_weights(problem, size, seed)
            found[column] = problem.solve("restarts", restarts=size.n_restarts, random_state=seed)
    return found


def one_draw(table: int, pair: str, function: str, seed: int, size: Size) -> tuple[float, ...]:
    """Errors of the single layer and of both concatenations, and whether all answers were stationary."""
    single, *solutions = functions(table, pair, function, seed, size).values()
    stationary = all(solution.status.is_success for solution in solutions)
    return (*(error_of(h, function) for h in (single, *solutions)), float(stationary))


def weighed(problem: OuterLearning, lam: float, mu: float) -> OuterLearning:
    family: Concatenations = problem.family
    return problem.with_loss(least_squares(lam), family.with_mu(mu))


def with_chosen_weights(problem: OuterLearning, size: Size, seed: int) -> OuterLearning:
    if size.choice == "printed":
        return weighed(problem, min(size.grid), min(size.grid))
    starts = size.n_restarts_of_choice
    chosen = select_weights(
        problem, weighed, size.grid, size.grid, n_splits=size.n_splits, n_restarts=starts, seed=seed
    )
    return weighed(problem, chosen.lam, chosen.mu)


def run_table(table: int, size: Size, pairs: Any, names: Any, file: Path) -> dict[tuple[str, str], np.ndarray]:
    """Errors of all draws, shape (n_draws, 4), for every pair and function; the file says what is known already."""
    settings = [size.n_points, size.n_restarts, len(size.grid), size.n_splits, size.choice, size.n_restarts_of_choice]
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    same = [r for r in lines if r["settings"] == [table, *settings]]
    known = {(r["pair"], r["function"], r["draw"]): r["errors"] for r in same}
    cells = [(pair, function) for pair in pairs for function in names]
    jobs = [(*cell, draw) for cell in cells for draw in range(size.n_draws) if (*cell, draw) not in known]
    parallel = Parallel(n_jobs=size.n_jobs, return_as="generator")
    rows = parallel(delayed(one_draw)(table, *job, size) for job in jobs)
    for (pair, function, draw), errors in zip(jobs, rows, strict=True):
        known[pair, function, draw] = errors
        record = {"settings": [table, *settings], "pair": pair, "function": function, "draw": draw, "errors": errors}
        with file.open("a") as records:
            records.write(json.dumps(record) + "\n")
    return {cell: np.array([known[(*cell, draw)] for draw in range(size.n_draws)]) for cell in cells}


def kind(table: int, size: Size) -> str:
    """Which problem a table is about, how lam and mu were chosen, and from how many starts."""
    chosen = f" from {size.n_restarts_of_choice} starts, then" if size.choice == "held-out" else ","
    problem = "interpolation," if table == 1 else f"regression, (lam, mu) by {size.choice} choice{chosen}"
    return f"{problem} {size.n_restarts} starts"


def print_table(table: int, results: dict[tuple[str, str], np.ndarray], size: Size) -> None:
    print(f"\nTable {table}, {kind(table, size)}:")
    print(f"median [quartiles] of {size.n_draws} draws of {size.n_points} points (paper)")
    print(
        f"{'pair':<14} {'':<3} {'layers':<12} {'error':>8}  {'quartiles':<18} {'paper':>8}  {'better than single':<18}"
    )
    for (pair, function), errors in results.items():
        for column, label in enumerate(["single", *PAIRS[pair][1]]):
            low, median, high = np.quantile(errors[:, column], [0.25, 0.5, 0.75])
            printed = PAPER[table, pair, function]
            wins = f"{np.sum(errors[:, column] < errors[:, 0])} of {len(errors)} draws" if column else ""
            sign = (
                ""
                if not column or (median < np.median(errors[:, 0])) == (printed[column] < printed[0])
                else "  other sign"
            )
            print(
                f"{pair:<14} {function:<3} {label:<12} {median:8.4f}  [{low:.4f}, {high:.4f}]   "
                f"({printed[column]:.4f})  {wins}{sign}"
            )
    share = np.mean([errors[:, 3].mean() for errors in results.values()])
    print(f"draws in which all answers were stationary points: {100 * share:.0f} %", flush=True)


def save_maps(table: int, size: Size, pairs: Any, names: Any, folder: Path) -> None:
    """Figures 3 to 10: pointwise errors of the first draw; and Figure 11, for Mat-TP o Poly with noise."""
    import matplotlib

    matplotlib.use("Agg")
    from convexkernels.plotting import ErrorMapDisplay, GridTransformationDisplay

    folder.mkdir(parents=True, exist_ok=True)
    print(f"{kind(table, size)}:")
    for pair in pairs:
        number = 4 * table - 1 + list(PAIRS).index(pair)
        for name in names:
            found, (X, _) = functions(table, pair, name, 0, size), draw(name, 0, size.n_points)
            maps = {f"{column}, {error_of(h, name):.3f}": h.decision_function for column, h in found.items()}
            display = ErrorMapDisplay.from_functions(maps, FUNCTIONS[name], points=X).plot()
            display.figure_.savefig(folder / f"concatenated_figure_{number}_{name}.png", dpi=110)
            print(f"Figure {number}, {pair}, {name}: errors of {', '.join(maps)}", flush=True)
            if (table, pair) == (2, "Mat-TP o Poly"):
                inner = {column: h.kernel.images for column, h in found.items() if column != "single"}
                display = GridTransformationDisplay.from_maps(inner, FUNCTIONS[name]).plot()
                display.figure_.savefig(folder / f"concatenated_figure_11_{name}.png", dpi=110)


def save_figure(table: int, results: dict[tuple[str, str], np.ndarray], folder: Path) -> None:
    """Errors of all draws as boxes, one panel per pair and function, the paper's one draw as crosses."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from convexkernels.plotting.canvas import CLASS_COLORS, plain_ticks

    figure, axes = plt.subplots(len(FUNCTIONS), len(PAIRS), figsize=(13, 6), sharey="row", layout="constrained")
    for (pair, function), errors in results.items():
        ax = axes[list(FUNCTIONS).index(function), list(PAIRS).index(pair)]  # what was not run stays empty
        if len(errors) < 5:  # too few for a box
            for draw in errors:
                ax.plot([1, 2, 3], draw[:3], "o", color=CLASS_COLORS[0], label="here, one draw")
        else:
            boxes = ax.boxplot(errors[:, :3], medianprops={"color": CLASS_COLORS[0]})["boxes"]
            boxes[0].set_label(f"here, {len(errors)} draws")
        ax.plot([1, 2, 3], PAPER[table, pair, function], "x", color=CLASS_COLORS[1], label="paper, one draw")
        ax.set(title=f"{pair}, {function}", yscale="log", xlim=(0.5, 3.5))
        ax.set_xticks([1, 2, 3], ["single", *PAIRS[pair][1]])
        plain_ticks(ax.yaxis)
    for row in axes:
        row[0].set_ylabel("root mean square error on the grid")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    figure.legend(known.values(), known, loc="outside upper right", ncols=2, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"concatenated_table_{table}.png", dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> dict[int, dict[tuple[str, str], np.ndarray]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=int, choices=(1, 2), help="only this table")
    parser.add_argument("--pairs", nargs="+", choices=list(PAIRS), default=list(PAIRS))
    parser.add_argument("--functions", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--figures", action="store_true", help="Figures 3 to 11 for the first draw, no table")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=64)
    parser.add_argument("--restarts-of-choice", type=int, help="in the choice of lam and mu (as many as --restarts)")
    parser.add_argument("--grid-step", type=int, default=1, help="use every so-manieth value of lam and mu")
    parser.add_argument("--choice", choices=("held-out", "printed"), default="held-out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--quick", action="store_true", help="1 draw of 40 points, 2 starts, 2 values of lam and mu, 2 folds"
    )
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    options = parser.parse_args(argv)
    of_choice = options.restarts if options.restarts_of_choice is None else options.restarts_of_choice
    if min(options.restarts, of_choice) < 1:
        parser.error(f"--restarts {options.restarts}, --restarts-of-choice {of_choice}: a search has a start at least")
    warm_up()
    grid = PAPER_GRID[:: options.grid_step]
    size = Size(options.draws, 100, options.restarts, of_choice, grid, 5, options.choice, options.jobs)
    if options.quick:
        size = Size(1, 40, 2, 2, PAPER_GRID[3:8:4], 2, options.choice, 1)
    options.out.mkdir(parents=True, exist_ok=True)
    results = {}
    for table in (1, 2) if options.table is None else (options.table,):
        began = time.perf_counter()
        if options.figures:
            save_maps(table, size, options.pairs, options.functions, options.out)
            continue
        results[table] = run_table(table, size, options.pairs, options.functions, options.out / "concatenated.jsonl")
        print_table(table, results[table], size)
        save_figure(table, results[table], options.out)
        print(f"{time.perf_counter() - began:.0f} s", flush=True)
    return results


if __name__ == "__main__":
    main()
