"""The pictures of hierarchical kernels show the numbers they are made of."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")


from convexkernels import HierarchicalGaussian, HierarchicalGaussianRegressor, InvalidInputError, Schedule, TreeSearch
from convexkernels.datasets import make_friedman1
from convexkernels.plotting import FeatureRelevanceDisplay, KernelTreeDisplay, RiskHistoryDisplay


@pytest.fixture(scope="module")
def model():
    X, y = make_friedman1(120, random_state=0)
    X = np.column_stack([X, np.ones(120)])
    search = TreeSearch("annealing", schedule=Schedule(2, 2, 5, 5, 2, 2, 2))
    return HierarchicalGaussianRegressor(2, search=search, random_state=0).fit(X, y)


def test_tree_has_a_line_per_weight(model):
    display = KernelTreeDisplay.from_estimator(model).plot()
    nodes = 2 + 1 + 1  # two leaves, the root, and the row of features
    assert len(display.ax_.lines) == len(model.tree_.flat_weights) + nodes
    # The constant column is not part of the tree.
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == [f"x{j}" for j in range(10)]
    widths = np.array([line.get_linewidth() for line in display.ax_.lines if len(line.get_xdata()) == 2])
    weights = model.tree_.flat_weights[:10]
    drawn = widths[:10]
    assert np.argmax(drawn) == np.argmax(weights)


def test_trees_of_any_depth_are_drawn():
    leaf = HierarchicalGaussian([1.0, 2.0], features=[0, 2])
    deep = HierarchicalGaussian([1.0, 0.5], [HierarchicalGaussian([1.0], [leaf]), HierarchicalGaussian([0.3], [leaf])])
    display = KernelTreeDisplay(deep, ["a", "b", "c"]).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["features", "layer 1", "layer 2", "kernel"]
    flat = KernelTreeDisplay(leaf, ["a", "b", "c"]).plot()
    assert len(flat.ax_.lines) == 2 + 1 + 1


def test_relevance_is_sorted_and_named(model):
    display = FeatureRelevanceDisplay.from_estimator(model, [f"column {j}" for j in range(11)]).plot(most=4)
    values = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(values, 100 * np.sort(model.feature_relevance_)[::-1][:4])
    strongest = display.ax_.get_yticklabels()[0].get_text()
    assert strongest == f"column {model.feature_relevance_.argmax()}"
    with pytest.raises(InvalidInputError, match="has 2 entries"):
        FeatureRelevanceDisplay.from_estimator(model, ["a", "b"])


def test_history_shows_the_three_parts_and_the_answer(model):
    display = RiskHistoryDisplay.from_solution(model.solution_).plot()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [label[:2] for label in labels] == ["D1", "D2", "D3", "an"]
    assert display.ax_.lines[-1].get_ydata()[0] == model.solution_.trace["D3"].min()
    with pytest.raises(InvalidInputError, match="no risks"):
        RiskHistoryDisplay.from_solution(object())


def test_history_of_steps_on_other_rows_says_what_it_shows():
    X, y = make_friedman1(120, random_state=0)
    found = HierarchicalGaussianRegressor(2, search=TreeSearch("stochastic", max_iter=5), random_state=0).fit(X, y)
    ax = RiskHistoryDisplay.from_solution(found.solution_).plot().ax_
    assert ax.get_ylabel() == "risk on rows held out, mean of the latest steps"
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [record.upper for record in found.solution_.history[1:]])
