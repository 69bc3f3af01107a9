"""Figure 2 of Steinwart, Thomann and Schmid, from the errors of methods on sets, here and in Table 1 of the paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np

# The columns of Table 1, and what of the methods here is compared with three of them.
COLUMNS = ("SVM", "HKL", "Ours", "RF", "DNN")
RIVALS = {"ours": "Ours", "forest": "RF", "network": "DNN"}
# Shares that the middle and the right count sets at.
SHARES = np.linspace(0.0, 0.3, 301)


def relative(errors: dict[tuple[str, str], float], methods: list[str], baseline: str) -> dict[str, np.ndarray]:
    """Errors over that of the baseline, on the sets that have both."""
    sets = sorted({name for name, method in errors if method == baseline})
    return {m: np.array([errors[s, m] / errors[s, baseline] for s in sets if (s, m) in errors]) for m in methods}


def better_and_worse(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """On how many sets each method is ahead of all others, and behind the best one, by as much as `SHARES`.

    Parameters
    ----------
    errors : ndarray of shape (n_methods, n_sets)

    Returns
    -------
    better, worse : ndarray of int, shape (n_methods, n_shares)
        Sets with ``error <= (1 - share) least of the others``, and with ``error >= (1 + share) least`` beyond 0.
    """
    others = np.array([np.delete(errors, k, axis=0).min(axis=0) for k in range(len(errors))])
    gain, loss = 1.0 - errors / others, errors / errors.min(axis=0) - 1.0
    better = (gain[:, None, :] >= np.maximum(SHARES, 1e-12)[:, None]).sum(axis=2)
    return better, (loss[:, None, :] >= np.maximum(SHARES, 1e-12)[:, None]).sum(axis=2)


def save_figure(errors: dict[tuple[str, str], float], paper: dict[str, tuple[float, ...]], path: Path) -> None:
    """Left: boxes of errors over that of the SVM. Middle and right: sets on which a method is so much better, or worse.

    Parameters
    ----------
    errors : dict from (set, method) to float
        Means over splits.
    paper : dict from set to tuple of five float
        Table 1.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    printed = {(name, column): value for name, row in paper.items() for column, value in zip(COLUMNS, row, strict=True)}
    printed = {key: value for key, value in printed.items() if key[0] in {name for name, _ in errors}}
    here = relative(errors, ["ours", "forest", "ridge", "network", "folds", "published"], "svm")
    boxes = {f"{method}, here": ratios for method, ratios in here.items() if ratios.size}
    boxes |= {f"{column}, paper": ratios for column, ratios in relative(printed, list(COLUMNS[1:]), "SVM").items()}
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13.0, 4.2), layout="constrained", width_ratios=(1.5, 1, 1)
    )
    if boxes:
        left.boxplot(list(boxes.values()), orientation="vertical")
        left.set_xticks(range(1, 1 + len(boxes)), list(boxes), rotation=30, ha="right")
    left.axhline(1.0, color="0.6", lw=0.8)
    left.set_ylabel("error over that of the SVM")
    for name, ratios in boxes.items():
        print(f"{name:<14} median error over that of the SVM {np.median(ratios):.3f} ({len(ratios)} sets)")
    shared = [s for s in paper if all((s, method) in errors for method in RIVALS)]
    if shared:
        for source, found, style in (("here", errors, "-"), ("paper", printed, "--")):
            names = RIVALS.keys() if source == "here" else RIVALS.values()
            counts = better_and_worse(np.array([[found[s, name] for s in shared] for name in names]))
            for ax, lines in zip((middle, right), counts, strict=True):
                for k, (name, line) in enumerate(zip(names, lines, strict=True)):
                    ax.step(100.0 * SHARES, line, style, color=f"C{k}", where="post", label=f"{name}, {source}")
            for k, name in enumerate(names):
                better, worse = ([int(line[k][i]) for i in (0, 50, 100)] for line in counts)
                print(f"{name:<8} {source:<6} best by 0, 5, 10 %: {better}; worse than the best by that: {worse}")
        middle.legend(fontsize=8)
    middle.set(xlabel="better than both others by, %", ylabel=f"sets of {len(shared)}")
    right.set(xlabel="worse than the best by, %", ylabel=f"sets of {len(shared)}")
    for ax in (middle, right):
        ax.set_ylim(bottom=-0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)
