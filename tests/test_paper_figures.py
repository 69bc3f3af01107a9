"""What scripts that draw the figures of papers are asked for is what they draw, and where."""

import json

import numpy as np
import pytest
from matplotlib import pyplot as plt

from benchmarks import table1
from benchmarks.tessellated import figures
from convexkernels import GeneralizedPolynomial
from convexkernels.plotting.canvas import new_axes
from models import kernel_matching, voronoi_svm


def test_the_gaussians_are_as_many_as_the_decisions_of_the_tessellated_kernels():
    """Up to 400; with z the monomials are of twice as many variables."""
    for degree, z_degree, decisions in (
        (1, 0, 21),
        (2, 0, 78),
        (3, 0, 210),
        (4, 0, 465),
        (1, None, 55),
        (2, None, 465),
    ):
        classes = kernel_matching.classes(degree, z_degree)
        rank = classes["TK"].on(0.5 * np.random.default_rng(0).uniform(-1.0, 1.0, (3, 2)) + 0.5).size
        assert rank * (rank + 1) // 2 == decisions
        assert len(classes["Gaussians"].candidates) == min(decisions, 400)


def test_the_run_with_z_has_a_picture_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_matching, "classes", lambda degree, z_degree: {"GPK": GeneralizedPolynomial(1)})
    for options in ([], ["--with-z"]):
        kernel_matching.main(["--degree", "1", "--out", str(tmp_path), *options])
    assert {file.name for file in tmp_path.iterdir()} == {"kernel_matching.png", "kernel_matching_with_z.png"}
    plt.close("all")


@pytest.mark.parametrize(
    ("given", "sizes", "repeats", "validation"),
    [
        ([], voronoi_svm.FEW_SIZES, 3, "leave-one-out"),
        (["--as-printed"], voronoi_svm.SIZES, 100, "folds"),
        (["--as-printed", "--sizes", "700", "--repeats", "2", "--validation", "split"], [700], 2, "split"),
        (["--as-printed", "--validation", "leave-one-out"], voronoi_svm.SIZES, 100, "leave-one-out"),
        (["--quick", "--as-printed"], [300, 800], 1, "folds"),
        (["--quick", "--repeats", "2"], [300, 800], 2, "leave-one-out"),
    ],
)
def test_what_is_given_beside_the_printed_sizes_counts(given, sizes, repeats, validation, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(voronoi_svm, "run", lambda X, y, *what: seen.append(what))
    monkeypatch.setattr(voronoi_svm, "draw", lambda *what: None)
    voronoi_svm.main(["--out", str(tmp_path), *given])
    found, repeats_of, options, _ = seen[0]
    assert (found, repeats_of(1000), options.validation) == (sizes, repeats, validation)


def test_the_axes_of_the_figures_of_tessellated_kernels(tmp_path, monkeypatch):
    """Figure 1 says what is drawn; errors of Figure 7 are on a logarithmic axis, those of Figure 5 are not."""
    made = []
    monkeypatch.setattr(figures, "new_axes", lambda *a, **options: made.append(new_axes(*a, **options)) or made[-1])
    monkeypatch.setattr(figures, "errors", lambda *a: {"TK": ([40, 80], [0.3, 0.0])})
    for k in (1, 5, 7):
        figures.main(["--figures", str(k), "--tables", "spiral", "--out", str(tmp_path)])
    (above, below), *curves = (np.ravel(axes) for axes in made)
    assert (above.get_ylabel(), below.get_ylabel()) == ("classifier f(z)", "k(5, z), largest value 1")
    assert below.get_xlabel() == "z"
    assert [axis.get_yscale() for axes in curves for axis in axes] == ["linear", "log"]
    plt.close("all")


def test_learning_curves_run_with_the_options_of_table_1_and_only_once(tmp_path, monkeypatch):
    """Of Figures 5 and 7; every option that the functions of `benchmarks.table1` may read is there."""
    seen, curves = [], []
    by_matrix, by_weights = figures.by_matrix, figures.by_weights
    monkeypatch.setattr(figures, "by_matrix", lambda *a: seen.append(a[-1]) or by_matrix(*a))
    monkeypatch.setattr(figures, "by_weights", lambda *a: seen.append(a[-1]) or by_weights(*a))
    monkeypatch.setattr(figures, "draw", lambda number, found, options, **how: curves.append(found))
    monkeypatch.setattr(figures, "NOISE_POINTS", 40)
    monkeypatch.setattr(table1, "COSTS", [1.0])
    monkeypatch.setattr(table1, "MARGINS", [0.5])
    command = ["--figures", "5", "7", "--tables", "spiral", "--sizes", "30", "--folds", "2", "--max-time", "0.5"]
    figures.main([*command, "--out", str(tmp_path)])
    assert len(seen) == 6
    assert all(vars(options).keys() >= vars(table1.fit_options()).keys() for options in seen)
    assert {(options.chooser, options.without_intercept) for options in seen} == {(None, False)}
    assert [options.bandwidths for options in seen[1:3]] == ["deviation", "box"]
    records = [json.loads(line) for line in (tmp_path / "learning_curves.jsonl").read_text().splitlines()]
    assert [record["table"] for record in records] == ["noisy spiral"] * 3 + ["spiral"] * 3
    assert [record["method"] for record in records] == list(figures.CURVES) * 2
    assert all(0.0 <= record["error"] <= 1.0 for record in records)
    figures.main([*command, "--out", str(tmp_path)])
    assert len(seen) == 6
    assert curves[2:] == curves[:2]
