"""The benchmark on tables: its list is consistent, it resumes, and its statistics agree with other implementations."""

import re
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
import sklearn

pd = pytest.importorskip("pandas")

from benchmarks.defaults import SEEN  # noqa: E402
from benchmarks.tabular import cell, methods, plan, report, runner, sizes, statistics  # noqa: E402
from benchmarks.tabular.catalog import TABLES  # noqa: E402
from benchmarks.tabular.methods import METHODS, RandomSearch  # noqa: E402
from benchmarks.tabular.rows import append, known  # noqa: E402
from convexkernels.estimators import ESTIMATORS  # noqa: E402


def test_the_list_has_the_tables_of_the_catalog_at_the_sizes_of_the_rule():
    listed = plan.frozen()
    assert list(listed) == list(TABLES)
    facts = {name: plan.facts(row) for name, row in listed.items()}
    cut = sizes.training_rows(list(facts.values()))
    for name, row in listed.items():
        assert (row["task"], int(row["shaped"])) == (TABLES[name].task, int(TABLES[name].shaped))
        assert int(row["training_rows"]) == min(cut, facts[name].most_rows), name
        assert float(row["budget"]) == sizes.budget(facts[name], int(row["training_rows"])), name


def test_the_list_is_what_was_asked_for():
    listed = plan.frozen().values()
    packaged = [row["task"] for row in listed if row["source"] not in ("folder", "uci")]
    assert packaged.count("classification") >= 20
    assert packaged.count("regression") >= 15
    assert sum(row["source"] == "folder" for row in listed) == 24
    assert sum(row["source"] == "uci" for row in listed) == 21
    assert max(int(row["rows"]) for row in listed) <= 60_000
    assert sum(int(row["categorical"]) > 0 for row in listed) >= 15
    assert sum(float(row["missing"]) > 0 for row in listed) >= 5


def test_every_estimator_of_the_library_is_a_method():
    # An interpolator has no meaning where targets have noise.
    names = {name.split(",")[0] for name in ESTIMATORS} - {"ConcatenatedKernelInterpolator"}
    assert names == {name for name, method in METHODS.items() if method.ours and not method.tuned}


def test_tables_whose_test_rows_were_seen_are_apart():
    assert all(TABLES[name].shaped for name in SEEN)


def test_what_says_most_is_run_first():
    found = plan.cells(None, None, quick=False, splits=2)
    stages = [(one.split, one.stage) for one in found]
    assert stages == sorted(stages)
    assert {stage for _, stage in stages} == set(range(7))
    assert not found[0].entry.shaped
    assert len(found) == len({one.key for one in found})
    visits = [key for key, _ in groupby(found, key=lambda one: (one.split, one.stage, one.entry))]
    assert len(visits) == len(set(visits))


def test_no_estimator_of_the_library_has_a_limit_of_wall_seconds():
    models = [method.build(method.tasks[0], 3, 1.0) for method in METHODS.values() if method.ours and not method.tuned]
    assert {model.estimator.max_time for model in models} == {None}


def test_all_methods_together_fit_the_hours():
    spent = sum(one.guess for one in plan.cells(None, None, quick=False) if not one.method.slow)
    assert spent <= 3600.0 * sizes.HOURS


def test_a_run_writes_rows_resumes_and_reports(tmp_path):
    said = []
    todo = plan.cells(["quick_cancer", "quick_diabetes"], ["linear", "random forest"], quick=True)
    assert len(todo) == 4
    runner.run(todo[:3], None, tmp_path, 1, said.append)
    assert all("done" in line for line in said)
    first = next(iter(sorted(tmp_path.glob("*.csv"))))
    first.write_text(first.read_text() + "quick_diab")  # a killed process
    missing = [one for one in todo if one.key not in plan.done(tmp_path)]
    assert [one.key for one in missing] == [todo[3].key]
    runner.run(missing, None, tmp_path, 2, said.append)
    rows = plan.results(tmp_path)
    assert len(rows) == 4
    assert {row["status"] for row in rows} == {"done"}
    assert {row["version"] for row in rows} == {sklearn.__version__}
    assert all(0.3 < float(row["rmse_std"]) < 1.0 for row in rows if row["task"] == "regression")
    assert all(0.85 < float(row["accuracy"]) <= 1.0 for row in rows if row["task"] == "classification")
    report.write(rows, tmp_path)
    text = (tmp_path / "REPORT.md").read_text()
    assert text.count("not run") >= 2
    assert re.search(r"first defaults \| 0 of \d+ \| 0 of", text)
    assert "| random forest |" in text
    of_more = [*rows, *({**row, "split": "1"} for row in rows if row["method"] == "linear")]
    assert "| random forest |" in report.write(of_more, tmp_path).read_text()
    page = report.write(of_more, tmp_path, 2)
    assert page.parent != tmp_path
    assert "| linear |" in page.read_text()
    assert "| random forest |" not in page.read_text()


def test_a_cell_beyond_its_limit_has_a_row_without_a_score(tmp_path, monkeypatch):
    monkeypatch.setattr(methods, "LIMIT", 1e-3)
    monkeypatch.setattr(methods, "SLOW_LIMIT", 1e-3)
    monkeypatch.setattr(cell, "WALL", 1e6)
    runner.run(plan.cells(["quick_cancer"], ["linear"], quick=True), None, tmp_path, 1, lambda text: None)
    assert plan.results(tmp_path)[0]["status"] == "time"


def test_a_cell_that_other_work_has_held_up_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.setattr(cell, "WALL", 0.0)
    said = []
    runner.run(plan.cells(["quick_cancer"], ["random forest"], quick=True), None, tmp_path, 1, said.append)
    assert "again" in said[0]
    assert not plan.done(tmp_path)


def test_rows_are_whole_or_absent(tmp_path: Path):
    path = tmp_path / "rows.csv"
    append(path, {"a": 1, "b": "x, y"}, ["a", "b"])
    path.write_text(path.read_text() + "2,cut")
    assert [row["b"] for row in known(path)] == ["x, y"]
    append(path, {"a": 3, "b": "z"}, ["a", "b"])
    assert [row["a"] for row in known(path)] == ["1", "3"]


class _Constant:
    """Predicts a number that is a setting."""

    def __init__(self, task, seed, value=0.0):
        self.value = value

    def fit(self, X, y, valid=None):
        self.rows = len(y)
        return self

    def stopped(self):
        return {}

    def predict(self, X):
        return np.full(len(X), self.value)


def test_a_column_that_has_begun_is_left_out_until_it_is_complete():
    def row(table, method):
        return {"task": "regression", "table": table, "split": "0", "method": method, "status": "done"} | {
            "fit_seconds": "1.0",
            "rmse_std": "0.5",
        }

    rows = [row(f"t{k}", name) for k in range(20) for name in ("linear", "CatBoost")]
    rows += [row(f"t{k}", "LightGBM") for k in range(19)] + [row("t0", "XGBoost")]
    found = report.matrix(rows, "regression", "rmse_std")
    assert found.methods == ["linear", "LightGBM", "CatBoost"]
    assert len(found.tables) == 19


def test_random_search_trains_the_best_setting_on_all_rows():
    X, y = pd.DataFrame({"x": np.zeros(40)}), np.full(40, 7.0)
    space = {"value": lambda rng: float(rng.choice([3.0, 7.0, 9.0]))}
    search = RandomSearch(_Constant, space, "regression", 0, 10.0).fit(X, y)
    assert (search.value, search.rows, search.n_tried) == (7.0, 40, 16)


def test_a_setting_that_fails_is_no_candidate():
    def made(task, seed, value=0.0):
        if value > 3.0:
            raise ValueError("no")
        return _Constant(task, seed, value)

    X, y = pd.DataFrame({"x": np.zeros(40)}), np.full(40, 7.0)
    search = RandomSearch(made, {"value": lambda rng: float(rng.choice([3.0, 9.0]))}, "regression", 0, 10.0).fit(X, y)
    assert (search.value, search.n_tried) == (3.0, 16)


def test_ranks_and_shares():
    losses = np.array([[1.0, 2.0, np.inf], [2.0, 2.0, 4.0]])
    np.testing.assert_allclose(statistics.mean_ranks(losses), [1.25, 1.75, 3.0])
    np.testing.assert_allclose(statistics.shares(losses), [1.0, 0.75, 0.25])
    assert statistics.against(losses, 0, 1) == (1, 1, 0)


def test_elo_is_the_maximum_of_the_likelihood():
    losses = np.random.default_rng(0).random((30, 4)) + np.arange(4) * 0.1
    ratings = statistics.elo(losses, anchor=3)
    assert ratings[3] == pytest.approx(1000.0)
    wins = (losses[:, :, None] < losses[:, None, :]).sum(0) + 0.5 * (1 - np.eye(4))
    expected = 1.0 / (1.0 + 10.0 ** ((ratings[None, :] - ratings[:, None]) / 400.0))
    games = wins + wins.T
    np.testing.assert_allclose(wins.sum(1), (games * expected).sum(1), rtol=1e-6)


def test_the_signed_rank_test_agrees_with_baycomp():
    baycomp = pytest.importorskip("baycomp")
    change = np.random.default_rng(1).normal(-0.02, 0.05, 25)
    ours = statistics.signed_rank(change, 0.01)
    theirs = baycomp.SignedRankTest.probs(np.zeros(25), -change, rope=0.01)
    np.testing.assert_allclose(ours, theirs[::-1], atol=0.03)


def test_the_signed_rank_test_knows_better_equal_and_worse():
    better, equal, worse = statistics.signed_rank(np.full(20, -0.2), 0.01)
    assert better > 0.99
    assert statistics.signed_rank(np.full(20, 0.2), 0.01)[2] == pytest.approx(better)
    assert statistics.signed_rank(np.zeros(20), 0.01)[1] > 0.99
    assert equal + worse < 0.01
