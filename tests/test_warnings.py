"""Where the warnings of the library appear, and how often."""

import multiprocessing
import os
import time
import warnings

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import GridSearchCV

import convexkernels as ck
from convexkernels.exceptions import kept_back, tell, tell_again


def _limited(C=1.0):
    return ck.MultipleKernelSVC([ck.Gaussian(1.0), ck.Gaussian(0.1)], C=C, tol=1e-12, max_time=1e-4)


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr("convexkernels.exceptions._SAID", set())


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    return X, np.sign(X[:, 0] + 0.3 * rng.standard_normal(60))


@pytest.mark.parametrize(("action", "count"), [("default", 1), ("always", 7)])
def test_search_over_parameters_warns_once_unless_asked_for_all(table, action, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        GridSearchCV(_limited(), {"C": [1.0, 10.0]}, cv=3).fit(*table)
    said = [one for one in caught if issubclass(one.category, ck.ConvexKernelsWarning)]
    assert len(said) == count
    assert {one.filename for one in said} == {__file__}
    assert "TIME_LIMIT" in str(said[0].message)


def test_every_line_of_the_user_has_its_own_warning(table):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        _limited(1.0).fit(*table)
        _limited(2.0).fit(*table)
    assert len({one.lineno for one in caught}) == len(caught) == 2


@pytest.mark.parametrize("wording", [{"message": ".*TIME_LIMIT"}, {"module": __name__}, {}])
def test_filters_apply_to_the_sentence_and_to_the_module_of_the_user(table, wording):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning, **wording)
        with pytest.raises(ck.ConvexKernelsWarning, match="TIME_LIMIT"):
            _limited().fit(*table)


@pytest.mark.parametrize("action", ["default", "ignore"])
def test_what_was_kept_back_is_told_once_and_no_more(action):
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        for number in (1, 2):
            with kept_back() as kept:
                tell(f"kept back, {action}, {number}")
            said.append(len(kept))
            tell_again(kept)
    assert said == [1, 1]
    assert len(caught) == (1 if action == "default" else 0)


def test_sentences_about_time_count_as_one():
    early, other = "max_time ended the choice of C early; raise it.", "TIME_LIMIT: a part of the rows; raise max_time."
    ended = "spectral-gradient stopped with status TIME_LIMIT (the limit came first); no bounds."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for said in early, ended, other:
            for _ in range(2):
                tell(said)
    assert [str(one.message) for one in caught] == [early, other]


def test_what_was_ignored_is_told_when_asked_for():
    with warnings.catch_warnings(record=True) as caught:
        for action in ("ignore", "default", "default"):
            warnings.simplefilter(action)
            tell("ignored first")
    assert len(caught) == 1


def test_a_search_that_time_has_ended_says_so_by_default():
    X, y = ck.datasets.make_friedman1(400, n_features=8, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        model = ck.HierarchicalGaussianRegressor(max_time=0.05).fit(X, y)
    assert model.solution_.status is ck.Status.TIME_LIMIT
    assert len(caught) == 1


def _say(number):
    tell(f"said among processes, {number}")
    time.sleep(0.05)  # so that every process has some of them
    return os.getpid()


def test_processes_of_one_search_warn_once_together(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    get_reusable_executor().shutdown(wait=True)  # workers that were there before have another environment
    workers = joblib.Parallel(2, backend="loky")(joblib.delayed(_say)(number) for number in range(12))
    assert len(set(workers)) == 2
    assert any(tmp_path.glob("convexkernels-said-*"))
    get_reusable_executor().shutdown(wait=True)
    assert capfd.readouterr().err.count("ConvexKernelsWarning: said among") == 1
    assert not any(tmp_path.glob("convexkernels-said-*"))


def test_a_process_that_can_leave_no_mark_says_it(monkeypatch, tmp_path):
    monkeypatch.setattr("multiprocessing.parent_process", multiprocessing.current_process)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "missing"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            tell("without a mark")
    assert len(caught) == 1


@pytest.mark.skipif(os.name != "posix", reason="elsewhere nobody can ask whether a process is there")
def test_what_a_killed_process_has_left_counts_no_more(monkeypatch, tmp_path):
    monkeypatch.setattr("multiprocessing.parent_process", multiprocessing.current_process)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        tell("left behind")
        (mark,) = tmp_path.iterdir()
        assert mark.read_text() == str(os.getpid())
        for number, times in ((1, 1), (2**22 + 7, 2)):  # a process that is there, and one that cannot be
            monkeypatch.setattr("convexkernels.exceptions._SAID", set())
            monkeypatch.setattr("convexkernels.workers._MARKED", set())
            mark.write_text(str(number))
            tell("left behind")
            assert len(caught) == times
    mark.unlink(missing_ok=True)
