"""Three figures of a matrix of losses: rank against seconds, wins by kind of table, and a dot for every table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tabular import statistics
from benchmarks.tabular.methods import METHODS

# Of the figures of a task and a score.
TITLES = {
    "regression_rmse_std": "numbers: root mean squared error",
    "classification_error": "classes: error",
    "classification_log_loss": "classes: log loss",
    "classification_auc_loss": "classes: area over the ROC curve",
}


def draw(part: Any, name: str, kinds: dict[str, list[str]], out: Path) -> None:
    """Write the figures of one score."""
    import matplotlib.pyplot as plt

    for kind, figure in (("pareto", _pareto), ("wins", _wins), ("dots", _dots)):
        drawn, axes = plt.subplots(layout="constrained", figsize=(8.0, 2.0 + 0.22 * _height(kind, part)))
        figure(axes, part, kinds)
        axes.set_title(TITLES[name])
        drawn.savefig(out / f"{name}_{kind}.png", dpi=120)
        plt.close(drawn)


def _height(kind: str, part: Any) -> int:
    return {"pareto": 16, "wins": 16, "dots": len(part.tables)}[kind]


def _colors(part: Any) -> list[str]:
    return ["tab:red" if METHODS[name].ours else "tab:blue" for name in part.methods]


def _pareto(axes: Any, part: Any, kinds: dict[str, list[str]]) -> None:
    """Mean rank over median seconds, and the front of what nothing beats in both."""
    ranks, seconds = statistics.mean_ranks(part.losses), np.median(part.seconds, axis=0)
    axes.scatter(seconds, ranks, c=_colors(part))
    order = np.argsort(seconds)
    front = [k for place, k in enumerate(order) if place == 0 or ranks[k] < ranks[order[:place]].min()]
    axes.step(seconds[front], ranks[front], where="post", color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel="processor seconds to fit (median over tables)", ylabel="mean rank")
    axes.margins(x=0.1)
    axes.invert_yaxis()
    _write_names(axes, seconds, ranks, part.methods)


def _write_names(axes: Any, x: Any, y: Any, names: list[str]) -> None:
    """A name beside every point, on the first side where it hides neither another point nor another name."""
    from matplotlib.transforms import Bbox

    axes.figure.draw_without_rendering()  # places the axes
    points = axes.transData.transform(np.column_stack([x, y]))
    taken = [Bbox.from_extents(*(point - 4), *(point + 4)) for point in points]
    sides = [(ha, (step, rise)) for rise in (3, -8, 11, -16, 19) for ha, step in (("left", 5), ("right", -5))]
    for x_k, y_k, name in zip(x, y, names, strict=True):
        for ha, offset in sides:
            text = axes.annotate(name, (x_k, y_k), offset, textcoords="offset points", fontsize=7, ha=ha)
            box = text.get_window_extent()
            free = not any(box.overlaps(other) for other in taken)
            if (free and axes.bbox.containsx(box.x0) and axes.bbox.containsx(box.x1)) or (ha, offset) == sides[-1]:
                break
            text.remove()
        taken.append(box)


def _wins(axes: Any, part: Any, kinds: dict[str, list[str]]) -> None:
    """How many tables of every kind each method is best on; ties are shared."""
    names = list(dict.fromkeys(kind for table in part.tables for kind in kinds[table]))
    finite = np.where(np.isfinite(part.losses), part.losses, np.inf)
    best = finite == finite.min(1, keepdims=True)
    best = best / best.sum(1, keepdims=True)
    counts = np.array([best[[name in kinds[table] for table in part.tables]].mean(0) for name in names])
    left, hues = np.zeros(len(names)), [f"C{k}" for k in range(10)]
    for place, k in enumerate(np.argsort(-counts[0])):
        hatch = "" if place < len(hues) else "///"  # more methods than colors
        axes.barh(names, counts[:, k], left=left, label=part.methods[k], color=hues[place % len(hues)], hatch=hatch)
        left += counts[:, k]
    axes.set_xlabel("share of tables a method is best on")
    axes.legend(fontsize=6, bbox_to_anchor=(1.0, 1.0), loc="upper left")


def _dots(axes: Any, part: Any, kinds: dict[str, list[str]]) -> None:
    """Every method on every table, relative to the best."""
    finite = np.maximum(np.where(np.isfinite(part.losses), part.losses, np.nan), 1e-9)
    ratio = finite / np.nanmin(finite, axis=1, keepdims=True)
    for k, color in enumerate(_colors(part)):
        axes.scatter(ratio[:, k], range(len(part.tables)), c=color, s=12, alpha=0.6, label=part.methods[k])
    axes.set_yticks(range(len(part.tables)), part.tables, fontsize=7)
    axes.set(xlabel="loss over the best loss of the table (red: this library)", xscale="log")
