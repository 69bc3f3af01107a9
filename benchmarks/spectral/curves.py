"""Figures 3 and 4 of Li, Liu and Wang (AAAI 2020): test accuracy and objective every 200 steps with batches of 32.

    python -m benchmarks.spectral.curves --data FOLDER [--sets mnist] [--steps 4000] [--features 2000] --out FOLDER
    python -m benchmarks.spectral.curves --data FOLDER --quick

80 % of the rows to learn from, 20 % to test on. All five settings start from W = 0 and from frequencies drawn with the
sigma that closed-form risks choose; lam1 and lam2 are the defaults of the estimator, the loss is the hinge loss of the
margin over all classes. Rows are shuffled, and every 200 batches are one entry. Records are appended to
OUT/spectral_curves.jsonl, a setting at a time; what is there is not run again. The paper shows curves and no numbers.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np

from benchmarks.spectral.rivals import read, split, stored
from convexkernels import ConvexKernelsWarning, SpectralKernelClassifier, Training, warm_up
from convexkernels.spectral.learning import SpectralPoint
from convexkernels.spectral.training import TrainingRun
from models.automated_spectral import PAPER, REGRESSION, SETTINGS

EVERY, BATCH = 200, 32


def curve(setting, parts, options):
    """Steps, test accuracy in percent, and mean objective of the last 200 steps."""
    X, y, T, t = parts
    settings = {"n_components": options.features, "random_state": 0, "loss": "hinge", "max_time": None}
    training = Training(batch_size=BATCH, max_epochs=1, validation_fraction=0.0)
    model = SpectralKernelClassifier(setting, training=training, **settings).fit(X, y)
    problem, theta, rng = model.solution_.problem, model.solution_.theta, np.random.default_rng(0)
    array, codes = problem.backend.array, np.searchsorted(model.classes_, t)
    Z, omega = array(model.scaling_.apply(T)) if hasattr(model, "scaling_") else array(T), theta.map.omega
    drawn = array(rng.standard_normal(omega.shape) * model.sigma_)
    start = SpectralPoint(theta.map.with_omega(drawn), 0.0 * theta.W, 0.0 * theta.intercept)
    entries = -(-options.steps // EVERY)
    training = Training(batch_size=BATCH, max_epochs=entries, validation_fraction=0.0).settled(problem.m)
    run = TrainingRun(problem, start, training, rng, lambda point: np.mean(point.scores(Z).argmax(axis=1) == codes))
    found, order = [(0, 100.0 * float(run.best_score), float("nan"))], np.empty(0, dtype=int)
    for entry in range(entries):
        while len(order) < EVERY * BATCH:
            order = np.concatenate([order, rng.permutation(problem.m)])
        rows, order = order[: EVERY * BATCH], order[EVERY * BATCH :]
        run.problem = problem.on_rows(rows)
        run.run(1)
        last = run.history[-1]
        found.append((EVERY * (entry + 1), 100.0 * float(last.validation), float(last.objective)))
    return found


def draw(name, curves, folder):
    from convexkernels.plotting.canvas import color, legend, new_axes

    axes = new_axes(None, size=(7.4, 6.5), rows=2)
    for k, (setting, rows) in enumerate(curves.items()):
        steps, accuracy, objective = np.array(rows, dtype=float).T
        axes[0].plot(steps[1:], accuracy[1:], color=color(k), label=setting)
        axes[1].plot(steps[1:], objective[1:], color=color(k), label=setting)
    axes[0].set(title=name, ylabel="test accuracy, %")
    axes[1].set(xlabel="steps", ylabel="objective", yscale="log")
    legend(axes[0])
    axes[0].figure.savefig(folder / f"spectral_curves_{name}.png", dpi=110)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--sets", nargs="+", default=["mnist"], choices=[s for s in PAPER if s not in REGRESSION])
    parser.add_argument("--settings", nargs="+", default=SETTINGS, choices=SETTINGS)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="segment, 1,000 steps, 100 features")
    options = parser.parse_args(argv)
    if options.quick:
        options.sets, options.steps, options.features = ["segment"], 1000, 100
    warm_up()
    warnings.simplefilter("ignore", ConvexKernelsWarning)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "spectral_curves.jsonl"
    for name in options.sets:
        key = [name, options.steps, options.features]
        curves, parts = {r["setting"]: r["curve"] for r in stored(path) if r["key"] == key}, None
        for setting in options.settings:
            if setting not in curves:
                parts = parts or split(name, *read(options.data, name), 0)
                curves[setting] = curve(setting, parts, options)
                with path.open("a") as lines:
                    lines.write(json.dumps({"key": key, "setting": setting, "curve": curves[setting]}) + "\n")
            rows = curves[setting]
            shown = rows[1 :: max(1, len(rows) // 5)]
            print(name, setting, "  ".join(f"{steps}: {a:.2f} ({o:.4f})" for steps, a, o in shown), flush=True)
        draw(name, curves, options.out)


if __name__ == "__main__":
    main()
