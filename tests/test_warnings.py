"""Where the warnings of the library appear, and how often."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import convexkernels as ck


def _limited(C=1.0):
    return ck.MultipleKernelSVC([ck.Gaussian(1.0), ck.Gaussian(0.1)], C=C, max_time=1e-4)


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
