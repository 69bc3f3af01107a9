"""Pictures of hierarchical Gaussian kernels: the tree, what it listens to, and how its weights were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.trees import TreesGramSet
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian
from convexkernels.plotting.canvas import CLASS_COLORS, new_axes
from convexkernels.validation import check_whole_number

__all__ = ["FeatureRelevanceDisplay", "KernelTreeDisplay", "RiskHistoryDisplay"]


# Thinnest and thickest lines of a tree, in points.
WIDTHS = (0.15, 4.0)


class KernelTreeDisplay:
    """A hierarchical Gaussian kernel as a tree, as in Figure 1: features below, the root above, weights as line widths.

    Widths are proportional to the weights, relative to the largest of their layer.

    Parameters
    ----------
    kernel : HierarchicalGaussian
    feature_names : sequence of str
        Of all columns.
    """

    def __init__(self, kernel: HierarchicalGaussian, feature_names: Sequence[str]) -> None:
        self.kernel = kernel
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator: Any, feature_names: Sequence[str] | None = None) -> KernelTreeDisplay:
        """The tree of a fitted estimator; names are those of its table, or x0, x1, ..."""
        names = _names(estimator, feature_names)
        return cls(estimator.tree_, [names[column] for column in estimator.scaling_.columns])

    def plot(self, ax: Any = None) -> KernelTreeDisplay:
        """Draw the tree.

        Returns
        -------
        self, with `ax_` and `figure_`
        """
        n = len(self.feature_names)
        tree = self.kernel.tree(n)
        weights = self.kernel.flat_weights
        self.ax_ = new_axes(ax, size=(max(6.0, 0.45 * max(n, len(tree.leaves)) + 1.0), 1.6 * tree.depth + 1.2))
        across, height = self._positions(tree)
        at_features = np.linspace(0.0, 1.0, n) if n > 1 else np.array([0.5])
        for i, place in enumerate(tree.places):
            color = CLASS_COLORS[tree.leaves.index(i) % len(CLASS_COLORS)] if place.is_leaf else "black"
            layer = np.concatenate([weights[p.weights] for j, p in enumerate(tree.places) if height[j] == height[i]])
            ends = (
                [(at_features[feature], 0) for feature in place.features]
                if place.is_leaf
                else [(across[child], height[child]) for child in place.children]
            )
            for (x, y), weight in zip(ends, weights[place.weights], strict=True):
                share = float(weight) / max(float(layer.max()), 1e-300)
                self.ax_.plot(
                    [x, across[i]],
                    [y, height[i]],
                    color=color,
                    linewidth=WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * share,
                    alpha=0.25 + 0.75 * share,
                    solid_capstyle="round",
                    zorder=1,
                )
            self.ax_.plot(across[i], height[i], "o", color=color, markersize=9, zorder=2)
        self.ax_.plot(at_features, np.zeros(n), "s", color="gray", markersize=5, zorder=2)
        self.ax_.set_xticks(at_features, self.feature_names, rotation=90 if n > 8 else 0)
        labels = ["features", *(f"layer {k}" for k in range(1, tree.depth)), "kernel"]
        self.ax_.set_yticks(range(tree.depth + 1), labels)
        self.ax_.set(ylim=(-0.25, tree.depth + 0.25), title="widths: weights relative to the largest of their layer")
        for side in ("top", "right", "bottom", "left"):
            self.ax_.spines[side].set_visible(False)
        self.ax_.tick_params(length=0)
        self.figure_ = self.ax_.figure
        return self

    @staticmethod
    def _positions(tree: Any) -> tuple[Array, Index]:
        """Leaves side by side, parents above the middle of their children."""
        across, height = np.zeros(len(tree.places)), np.zeros(len(tree.places), dtype=np.intp)
        leaves = tree.leaves
        for i, place in enumerate(tree.places):
            if place.is_leaf:
                across[i] = (leaves.index(i) + 0.5) / len(leaves)
                height[i] = 1
            else:
                across[i] = float(np.mean(across[list(place.children)]))
                height[i] = 1 + max(height[child] for child in place.children)
        return across, height


class FeatureRelevanceDisplay:
    """How much a learned kernel answers to each feature, as bars, the strongest on top.

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        Shares that sum to 1.
    feature_names : sequence of str
    """

    def __init__(self, relevance: Array, feature_names: Sequence[str]) -> None:
        self.relevance = relevance
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator: Any, feature_names: Sequence[str] | None = None) -> FeatureRelevanceDisplay:
        """The relevance of a fitted estimator."""
        return cls(np.asarray(estimator.feature_relevance_), _names(estimator, feature_names))

    def plot(self, ax: Any = None, *, most: int = 25) -> FeatureRelevanceDisplay:
        """Draw the bars of the `most` strongest features.

        Returns
        -------
        self, with `ax_` and `figure_`
        """
        most = check_whole_number("most", most, low=1)
        order = np.argsort(-self.relevance, kind="stable")[:most]
        self.ax_ = new_axes(ax, size=(6.0, 0.28 * len(order) + 1.2))
        self.ax_.barh(np.arange(len(order)), 100.0 * self.relevance[order], color=CLASS_COLORS[0])
        self.ax_.set_yticks(np.arange(len(order)), [self.feature_names[j] for j in order])
        self.ax_.invert_yaxis()
        self.ax_.set_xlabel("share of what stretching a feature does to the kernel, %")
        self.figure_ = self.ax_.figure
        return self


class RiskHistoryDisplay:
    """Risks along a search: on D1, D2 and D3 for the published one, on rows held out for the other.

    Parameters
    ----------
    risks : dict of str to ndarray
        With ``"seconds"``, all of one length.
    """

    def __init__(self, risks: dict[str, Array]) -> None:
        self.risks = risks

    @classmethod
    def from_solution(cls, solution: Any) -> RiskHistoryDisplay:
        """The history of a solution with hierarchical kernels."""
        problem = getattr(solution, "problem", None)
        if not isinstance(getattr(problem, "gram_set", None), TreesGramSet):
            raise InvalidInputError(
                f"{type(solution).__name__} has no risks along its way; pass the solution_ of a hierarchical estimator."
            )
        if solution.trace:
            return cls(solution.trace)
        seen = [record for record in solution.history if np.isfinite(record.upper)]
        seconds, values = (np.array([getattr(r, name) for r in seen]) for name in ("seconds", "upper"))
        return cls({"seconds": seconds, "held out": values})

    def plot(self, ax: Any = None) -> RiskHistoryDisplay:
        """Draw one line per part.

        Returns
        -------
        self, with `ax_` and `figure_`
        """
        self.ax_ = new_axes(ax)
        names = {"D1": "D1, trained on", "D2": "D2, weights moved by", "D3": "D3, weights chosen by"}
        for color, (name, values) in zip(
            CLASS_COLORS, ((k, v) for k, v in self.risks.items() if k != "seconds"), strict=False
        ):
            self.ax_.plot(self.risks["seconds"], values, color=color, label=names.get(name, name), linewidth=1.2)
        if "D3" in self.risks:
            best = int(np.argmin(self.risks["D3"]))
            point = (self.risks["seconds"][best], self.risks["D3"][best])
            self.ax_.plot(*point, "o", color="black", label="answer", markersize=5)
        self.ax_.set(xlabel="seconds", ylabel="risk", yscale="log")
        self.ax_.legend()
        self.figure_ = self.ax_.figure
        return self


def _names(estimator: Any, given: Sequence[str] | None) -> list[str]:
    """Names of the columns of an estimator's table."""
    n = len(estimator.scaling_.scale)
    if given is None:
        given = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(n)])
    if len(given) != n:
        raise InvalidInputError(f"feature_names has {len(given)} entries, but the table has {n} columns.")
    return [str(name) for name in given]
