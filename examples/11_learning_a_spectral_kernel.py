"""From random Fourier features to a learned spectral kernel.

A Gaussian kernel is a mean of cosines with random frequencies, and a few hundred of them are a table of explicit
features: that is how kernels reach long tables. Which frequencies are drawn is decided before anybody has looked at the
targets. Here they are learned, and they may come in pairs, so that the kernel need not treat all places alike.

The target is a chirp: slow on the left, fast on the right, and seven of eight features say nothing about it.

    python examples/11_learning_a_spectral_kernel.py [--quick] [--out figures]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics import r2_score

from convexkernels import Gaussian, Spectral, SpectralKernelRegressor, Training
from convexkernels.plotting import LearningCurvesDisplay, NonStationarityDisplay, SpectralDensityDisplay

SETTINGS = {
    "SK": "frequencies as drawn",
    "NSK": "pairs as drawn",
    "SKL": "frequencies learned",
    "NSKL": "pairs learned",
    "ASKL": "pairs learned, trace norm",
}


def chirp(X):
    return np.sin(2.0 * (X[:, 0] + 1.2) ** 2)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("figures"), help="folder for the figures")
    parser.add_argument("--quick", action="store_true", help="600 points and 100 frequencies instead of 2,000 and 300")
    options = parser.parse_args(argv)
    n_points, n_components, n_epochs = (600, 100, 20) if options.quick else (2000, 300, 60)

    # 1. Random frequencies are a Gaussian kernel, nearly.
    rng = np.random.default_rng(0)
    X, T = rng.uniform(-1, 1, (2, n_points, 8))
    for n in (10, 100, 1000):
        random = Spectral.random(8, n, sigma=1.0, stationary=True, random_state=0)
        error = np.abs(random(X[:100]) - Gaussian(0.5)(X[:100])).max()
        print(f"{n:>5} frequencies: {random.transform(X[:1]).shape[1]:>5} features, error of the kernel {error:.3f}")

    # 2. The five settings of the paper: one model, with or without learned frequencies, pairs, and the trace norm.
    y = chirp(X) + 0.05 * rng.standard_normal(n_points)
    models = {}
    for setting, meaning in SETTINGS.items():
        model = SpectralKernelRegressor(
            setting, n_components=n_components, training=Training(max_epochs=n_epochs), random_state=0
        )
        models[setting] = model.fit(X, y)
        print(f"{setting:<5} {meaning:<28} R^2 on new points {r2_score(chirp(T), model.predict(T)):.3f}")

    # 3. What has been learned? That the first feature matters was seen before the training: its start has a factor for
    # every feature, found on rows left out. Training moves the frequencies along the first feature to those of the
    # chirp, as the first figure shows, and leaves some noise along the others.
    learned = models["ASKL"]
    for title, kernel in (("drawn", learned.initial_kernel_), ("learned", learned.kernel_)):
        sizes = np.sqrt(np.mean(np.hstack([kernel.omega, kernel.omega2]) ** 2, axis=1))
        print(
            f"{title:<8} size of the frequencies, first feature and the others: {sizes[0]:.2f}, {sizes[1:].mean():.2f}"
        )
    print(f"certificate: {learned.solution_.certificate}")

    # 4. Lists are cross-validated: the closed-form risk says which sigmas are worth training with, all candidates are
    # trained for some epochs, the best third of them for some more, and the final solve chooses lam1 along a path.
    chosen = SpectralKernelRegressor(
        "ASKL",
        n_components=n_components,
        sigma=2.0 ** np.arange(-6.0, 4.0),
        lam2=[1e-4 / n_points, 1e-2 / n_points],
        training=Training(max_epochs=n_epochs),
        random_state=0,
    ).fit(X, y)
    seen = chosen.selection_
    for candidate, score, n in zip(seen.candidates, seen.scores, seen.n_epochs, strict=True):
        print(f"sigma {candidate.sigma:<6g} lam2 {candidate.lam2:.0e}: held-out loss {-score:.4f} after {n} epochs")
    print(
        f"chosen {chosen.sigma_:g}, {chosen.lam2_:.0e}: R^2 on new points {r2_score(chirp(T), chosen.predict(T)):.3f}"
    )

    save_figures(options.out, models)
    return models


def save_figures(folder, models):
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    learned = models["ASKL"]
    display = SpectralDensityDisplay.from_estimator(learned).plot()
    display.figure_.savefig(folder / "spectral_density.png", dpi=110)
    centers = np.zeros((3, 8))
    centers[:, 0] = [-0.8, 0.0, 0.8]
    # Features with phases are one draw of the kernel; the mean over phases is what the frequencies stand for.
    kernels = {
        "SKL: stationary": models["SKL"].kernel_.without_phases(),
        "ASKL: not stationary": learned.kernel_.without_phases(),
    }
    display = NonStationarityDisplay.from_kernels(kernels, centers, reach=1.0).plot()
    display.figure_.savefig(folder / "kernel_slices.png", dpi=110)
    trained = {name: models[name] for name in ("SKL", "NSKL", "ASKL")}
    display = LearningCurvesDisplay.from_estimators(trained).plot()
    display.figure_.savefig(folder / "learning_curves.png", dpi=110)
    print(f"figures are in {folder}")


if __name__ == "__main__":
    main()
