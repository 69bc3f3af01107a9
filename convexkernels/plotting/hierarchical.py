"""Pictures of hierarchical Gaussian kernels: the tree, what it listens to, and how its weights were found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from convexkernels.arrays import Array, Index
from convexkernels.exceptions import InvalidInputError
from convexkernels.families.curved.trees import TreesGramSet
from convexkernels.kernels.hierarchical.kernel import HierarchicalGaussian
from convexkernels.plotting.canvas import Display, attribute_of, color, curve, draw_bars, legend, plain_ticks
from convexkernels.solvers.nonconvex.stochastic import Stochastic
from convexkernels.validation import check_whole_number

# Thinnest and thickest lines of a tree, in points.
WIDTHS = (0.15, 4.0)


@dataclass(eq=False, repr=False)
class KernelTreeDisplay(Display):
    """A hierarchical Gaussian kernel as a tree, as in Figure 1: features below, the root above, weights as line widths.

    Widths are proportional to the weights, relative to the largest of their layer; small weights fade.

    Parameters
    ----------
    kernel : HierarchicalGaussian
    feature_names : sequence of str
        Of all columns.
    """

    kernel: HierarchicalGaussian
    feature_names: Sequence[str]

    @classmethod
    def from_estimator(cls, estimator: Any, feature_names: Sequence[str] | None = None) -> Self:
        """The tree of a fitted estimator; names are those of its table, or x0, x1, ..."""
        tree = attribute_of(estimator, "tree_", "a hierarchical estimator")
        names = _names(estimator, feature_names)
        return cls(tree, [names[column] for column in estimator.scaling_.columns])

    def plot(self, ax: Any = None, *, most: int = 10) -> Self:
        """Draw the tree with the `most` features whose weights are largest, in the order of the table."""
        n = len(self.feature_names)
        tree, weights = self.kernel.tree(n), self.kernel.flat_weights
        largest = np.zeros(n)
        for place in (tree.places[i] for i in tree.leaves):
            features = list(place.features)
            largest[features] = np.maximum(largest[features], weights[place.weights])
        shown = np.sort(np.argsort(-largest, kind="stable")[: check_whole_number("most", most, low=1)])
        wide = max(6.0, 0.6 * max(len(shown), len(tree.leaves)) + 1.0)
        ax = self._draws_on(ax, size=(wide, 1.6 * tree.depth + 1.2))
        across, height = _positions(tree)
        at_features = np.full(n, np.nan)
        at_features[shown] = (np.arange(len(shown)) + 0.5) / len(shown)
        for i, place in enumerate(tree.places):
            line = color(tree.leaves.index(i)) if place.is_leaf else "black"
            layer = np.concatenate([weights[p.weights] for j, p in enumerate(tree.places) if height[j] == height[i]])
            shares = weights[place.weights] / max(float(layer.max()), 1e-300)
            ends = at_features[list(place.features)] if place.is_leaf else across[list(place.children)]
            below = np.zeros(len(ends)) if place.is_leaf else height[list(place.children)]
            for x, y, share in zip(ends, below, shares.tolist(), strict=True):
                width = WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * share
                style = {"color": line, "linewidth": width, "alpha": max(0.06, share**1.5), "zorder": 1 + share / 2}
                ax.plot([x, across[i]], [y, height[i]], solid_capstyle="round", **style)
            ax.plot(across[i], height[i], "o", color=line, markersize=9, zorder=2)
        ax.plot(at_features, np.zeros(n), "s", color="gray", markersize=5, zorder=2)
        self._name_layers(ax, at_features, shown, tree.depth)
        return self

    def _name_layers(self, ax: Any, at_features: Array, shown: Index, depth: int) -> None:
        names = [self.feature_names[j] for j in shown]
        style = {"rotation": 30, "ha": "right"} if len(shown) > 6 else {}
        ax.set_xticks(at_features[shown], names, **style)
        of = f"; {len(shown)} of {len(at_features)} features" if len(shown) < len(at_features) else ""
        title = f"widths: weights relative to the largest of their layer{of}"
        ax.set_yticks(range(depth + 1), ["features", *(f"layer {k}" for k in range(1, depth)), "kernel"])
        ax.set(ylim=(-0.25, depth + 0.25), title=title)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)


def _positions(tree: Any) -> tuple[Array, Index]:
    """Leaves side by side, parents above the middle of their children."""
    across, height = np.zeros(len(tree.places)), np.ones(len(tree.places), dtype=np.intp)
    leaves = tree.leaves
    for i, place in enumerate(tree.places):
        if place.is_leaf:
            across[i] = (leaves.index(i) + 0.5) / len(leaves)
        else:
            children = list(place.children)
            across[i], height[i] = float(np.mean(across[children])), 1 + height[children].max()
    return across, height


@dataclass(eq=False, repr=False)
class FeatureRelevanceDisplay(Display):
    """How much learned functions depend on each feature, as bars, the strongest on top.

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        Shares that sum to 1.
    feature_names : sequence of str
    """

    relevance: Array
    feature_names: Sequence[str]

    @classmethod
    def from_estimator(cls, estimator: Any, feature_names: Sequence[str] | None = None) -> Self:
        """The relevance of any fitted estimator of this library."""
        return cls(np.asarray(estimator.feature_relevance_), _names(estimator, feature_names))

    def plot(self, ax: Any = None, *, most: int = 25) -> Self:
        """Draw the bars of the `most` strongest features."""
        order = np.argsort(-self.relevance, kind="stable")[: check_whole_number("most", most, low=1)]
        ax = self._draws_on(ax, size=(6.0, 0.28 * len(order) + 1.2))
        names = [self.feature_names[j] for j in order]
        draw_bars(ax, names, 100.0 * self.relevance[order], "share of the function's change when a feature is moved, %")
        return self


@dataclass(eq=False, repr=False)
class RiskHistoryDisplay(Display):
    """Risks along a search: on D1, D2 and D3 for the published one, on rows held out for the others.

    Where every step sees other rows, the risk is the mean of the latest steps.

    Parameters
    ----------
    risks : mapping of str to ndarray
        With ``"seconds"``, all of one length.
    """

    risks: Mapping[str, Array]

    @classmethod
    def from_solution(cls, solution: Any) -> Self:
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
        of = ", mean of the latest steps" if solution.solver == Stochastic.name else ""
        return cls({"seconds": seconds, f"risk on rows held out{of}": values})

    def plot(self, ax: Any = None) -> Self:
        """Draw one line per part; a single one is named by the axis."""
        ax = self._draws_on(ax, size=(7.0, 4.2))
        names = {"D1": "D1, trained on", "D2": "D2, weights moved by", "D3": "D3, weights chosen by"}
        seconds, parts = self.risks["seconds"], [name for name in self.risks if name != "seconds"]
        for k, name in enumerate(parts):
            ax.plot(seconds, self.risks[name], label=names.get(name, name), linewidth=1.4, **curve(k))
        if "D3" in self.risks:
            best = int(np.argmin(self.risks["D3"]))
            ax.plot(seconds[best], self.risks["D3"][best], "o", color="black", label="answer", markersize=5)
        ax.set(xlabel="time / s", ylabel="risk" if len(parts) > 1 else parts[0], yscale="log")
        plain_ticks(ax.yaxis)
        if len(parts) > 1:
            legend(ax)
        return self


def _names(estimator: Any, given: Sequence[str] | None) -> list[str]:
    """Names of the columns of an estimator's table."""
    known = estimator.feature_labels_
    if given is not None and len(given) != len(known):
        raise InvalidInputError(f"feature_names has {len(given)} entries, but the table has {len(known)} columns.")
    return [str(name) for name in (known if given is None else given)]
