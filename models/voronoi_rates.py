"""Learning rates of localized least squares: Theorems 5 and 7 and Corollary 6 of Meister and Steinwart, measured.

    excess risk of the VP-SVM   <=   C n^(-2 alpha / (2 alpha + d) + xi)

for a regression function of smoothness alpha. Here d = 1 and f(x) = |x + 1/2|^(alpha - 1/2) / 2 + sin(4 x) / 2 on
[-1, 1]: of smoothness alpha in the sense of the theorems (Besov, in the mean square) on the whole, and smooth on the
region T = [1/4, 1]. Three learners: the schedule (16) to (18) for alpha; the same for the smoothness that T is given
credit for, which Corollary 6 allows there and only there; and the TV-VP-SVM (Section 4.2), which knows neither, with
the same radii, from the nets of Theorem 7 up to --largest-net rows and from the default, geometric grid beyond.

    python -m models.voronoi_rates                       250 to 16,000 rows, 20 repetitions, a minute
    python -m models.voronoi_rates --alpha 1.5           2.5, 4.5, .. are refused: f would be a polynomial and a sine
    python -m models.voronoi_rates --quick

Printed are the excess risks, the slopes of their logarithms against log n with standard errors, and the exponents of
the theorems. Upper bounds may be beaten: a single kink costs less than the worst function of its class.
"""

import argparse
from pathlib import Path

import numpy as np

from convexkernels import Cells, CellSelection, VoronoiRidge
from convexkernels.bounds import cell_nets, cell_schedule, learning_rate

NOISE, REGION = 0.3, (0.25, 1.0)
GRID = np.linspace(-1.0, 1.0, 4001)[:, None]
INSIDE = (GRID[:, 0] >= REGION[0]) & (GRID[:, 0] <= REGION[1])


def regression_function(X, alpha):
    return 0.5 * np.abs(X[:, 0] + 0.5) ** (alpha - 0.5) + 0.5 * np.sin(4.0 * X[:, 0])


def smoothness(text):
    """alpha, or a refusal of the numbers for which f is no example."""
    alpha = float(text)
    if not 1.0 <= alpha < np.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number >= 1, which the theorems ask for")
    if (alpha - 0.5) % 2.0 == 0.0:
        raise argparse.ArgumentTypeError(
            f"for {text} the function |x + 1/2|^{alpha - 0.5:g} is a polynomial, of any smoothness; pass a number "
            f"whose distance from 1/2 is no even whole number, such as {alpha + 0.5:g}"
        )
    return alpha


def candidates_for(n, options):
    """Where the TV-VP-SVM of n rows chooses from."""
    return "nets" if n <= options.largest_net else "grid"


def learners(n, options):
    """Name -> estimator for n rows: all have cells of the same radius."""
    beta = 2.0 * options.smooth + 1.1
    settings = {"random_state": 0, "max_time": None}
    listed = {}
    for name, alpha in (("schedule", options.alpha), ("schedule of T", options.smooth)):
        schedule = cell_schedule(n, alpha, 1, beta=beta, constants=(1.0, 0.01, 0.9))
        one = CellSelection(candidates=([schedule.lam], [schedule.width]))
        cells = Cells("voronoi", radius=schedule.radius, scale=False)
        listed[name] = VoronoiRidge(cells=cells, selection=one, **settings)
    nets = cell_nets(n, 1, schedule.radius) if candidates_for(n, options) == "nets" else None
    chosen = CellSelection("global-split", widths="isotropic", candidates=nets)
    return listed | {"TV-VP-SVM": VoronoiRidge(cells=cells, selection=chosen, **settings)}


def excess_risks(n, repeat, options):
    """Name -> excess risks on the whole and on T, for one sample."""
    rng = np.random.default_rng([n, repeat])
    X = rng.uniform(-1.0, 1.0, (n, 1))
    y = regression_function(X, options.alpha) + NOISE * rng.standard_normal(n)
    found = {}
    for name, model in learners(n, options).items():
        squares = (model.fit(X, y).predict(GRID) - regression_function(GRID, options.alpha)) ** 2
        found[name] = squares.mean(), squares[INSIDE].mean()
    return found


def slope(sizes, risks):
    """Of the log of mean risks against log n, and its standard error; risks have the shape (n_sizes, n_repeats)."""
    t = np.log(sizes) - np.log(sizes).mean()
    noise = risks.std(axis=1, ddof=1) / risks.mean(axis=1) / np.sqrt(risks.shape[1])
    return t @ np.log(risks.mean(axis=1)) / (t @ t), float(np.linalg.norm(t * noise) / (t @ t))


def draw(sizes, risks, options):
    import matplotlib.pyplot as plt

    from convexkernels.plotting.canvas import curve, legend, plain_ticks

    options.out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
    for part, (ax, alpha) in enumerate(zip(axes, (options.alpha, options.smooth), strict=True)):
        for k, (name, found) in enumerate(risks.items()):
            ax.loglog(sizes, found[:, :, part].mean(axis=1), label=name, **curve(k, marked=True))
        rate, start = learning_rate(alpha, 1), risks["TV-VP-SVM"][0, :, part].mean()
        ax.loglog(sizes, start * (np.array(sizes) / sizes[0]) ** -rate, ":", color="0.5", label=f"n^(-{rate:.2f})")
        ax.set(xlabel="rows", title=("everywhere", "on T, where f is smooth")[part])
        plain_ticks(ax.xaxis, at=sizes)
        legend(ax)
    axes[0].set_ylabel("excess risk")
    plain_ticks(axes[0].yaxis)
    figure.savefig(options.out / "voronoi_rates.png", dpi=110)
    plt.close(figure)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alpha", type=smoothness, default=1.0, help="smoothness, >= 1 (%(default)s)")
    parser.add_argument("--smooth", type=float, default=3.0, help="smoothness that T is given credit for (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[250, 500, 1000, 2000, 4000, 8000, 16_000])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--largest-net", type=int, default=1000, help="rows up to which nets are used (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="three small sizes, three repetitions")
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figure")
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.repeats, options.largest_net = [60, 120, 240], 3, 120
    sizes, risks = options.sizes, {}
    print("TV-VP-SVM chooses from the nets of Theorem 7, or from the default grid of CellSelection")
    print(f"{'rows':>6}  {'from':<4}  mean excess risk everywhere, on T")
    for n in sizes:
        found = [excess_risks(n, repeat, options) for repeat in range(options.repeats)]
        for name in found[0]:
            risks.setdefault(name, []).append([one[name] for one in found])
        means = {name: np.mean(rows[-1], axis=0) for name, rows in risks.items()}
        shown = (f"{name} {whole:.2e} {region:.2e}" for name, (whole, region) in means.items())
        print(f"{n:>6}  {candidates_for(n, options):<4}  {'   '.join(shown)}", flush=True)
    risks = {name: np.array(found) for name, found in risks.items()}
    rates = learning_rate(options.alpha, 1), learning_rate(options.smooth, 1)
    print(f"\nslopes (theorems: {-rates[0]:.3f} everywhere, {-rates[1]:.3f} on T, up to xi)")
    for name, found in risks.items():
        slopes = (slope(sizes, found[:, :, part]) for part in (0, 1))
        print(f"{name:<14} " + "   ".join(f"{value:.3f} +- {error:.3f}" for value, error in slopes))
    draw(sizes, risks, options)
    return risks


if __name__ == "__main__":
    main()
