"""Certificates say what bounds prove and nothing more; solutions carry them unchanged."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convexkernels import DualityGap, Record, Solution, Stationarity, Status

finite = st.floats(min_value=-1e100, max_value=1e100)


def test_gap_is_relative_to_the_larger_bound():
    gap = DualityGap(upper=2.0, lower=1.9)
    assert gap.gap == pytest.approx(0.1)
    assert gap.relative_gap == pytest.approx(0.05)
    assert DualityGap(upper=-1.9, lower=-2.0).relative_gap == pytest.approx(0.05)


@pytest.mark.parametrize(("upper", "lower", "tol", "holds"), [
    (1.0, 1.0, 0.0, True),
    (0.0, 0.0, 0.0, True),
    (1.0, 0.99, 0.02, True),
    (1.0, 0.99, 0.005, False),
    (1.0, 1.0 + 1e-12, 1e-6, True),     # bounds crossed by rounding
    (1.0, 1.001, 1e-2, False),          # bounds crossed by a mistake
    (math.inf, 0.0, 1e-2, False),
    (1.0, -math.inf, 1e-2, False),
    (math.nan, 1.0, 1e-2, False),
    (1.0, math.nan, 1e-2, False),
])  # fmt: skip
def test_holds_only_for_proven_gaps(upper, lower, tol, holds):
    assert DualityGap(upper, lower).holds(tol) is holds


@pytest.mark.parametrize(("upper", "lower"), [(math.inf, 0.0), (0.0, -math.inf), (math.nan, 1.0), (1.0, math.nan)])
def test_unknown_bound_is_never_a_small_gap(upper, lower):
    assert DualityGap(upper, lower).relative_gap == math.inf


@given(finite, finite, st.floats(min_value=0.0, max_value=1.0))
def test_a_certificate_that_holds_brackets_the_optimum(upper, lower, tol):
    certificate = DualityGap(upper, lower)
    if certificate.holds(tol):
        scale = max(abs(upper), abs(lower))
        assert -1e-9 * scale <= upper - lower <= tol * scale * (1 + 1e-12)
        assert certificate.holds(min(1.0, 2 * tol))


@given(finite, finite, st.integers(min_value=-60, max_value=60))
def test_relative_gap_does_not_depend_on_units(upper, lower, k):
    scaled = DualityGap(math.ldexp(upper, k), math.ldexp(lower, k)).relative_gap
    assert scaled == pytest.approx(DualityGap(upper, lower).relative_gap, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("residual", "scale", "tol", "holds"),
    [(1e-5, 1.0, 1e-4, True), (1e-3, 1.0, 1e-4, False), (1e-3, 100.0, 1e-4, True), (math.nan, 1.0, 1e-4, False)],
)
def test_stationarity_is_relative_to_its_scale(residual, scale, tol, holds):
    assert Stationarity(1.0, residual, scale).holds(tol) is holds


def test_stationarity_has_no_gap_and_says_so():
    certificate = Stationarity(value=1.5, residual=1e-6)
    assert not hasattr(certificate, "gap")
    assert not hasattr(certificate, "lower")
    assert "stationarity only" in str(certificate)


def test_certificates_are_read_in_one_line_and_cannot_be_changed():
    gap = DualityGap(upper=2.0, lower=1.0)
    assert str(gap) == "optimum in [1, 2], relative gap 5.00e-01"
    with pytest.raises(dataclasses.FrozenInstanceError):
        gap.upper = 1.0
    assert pickle.loads(pickle.dumps(gap)) == gap


def test_only_proofs_count_as_success():
    assert {status for status in Status if status.is_success} == {Status.OPTIMAL, Status.STATIONARY}
    assert all(len(status.value) > 20 for status in Status), "every status is a sentence"


class Measured:
    """A problem that measures any point as the sum of what it is given."""

    def certificate(self, theta, alpha, witness):
        return DualityGap(upper=float(theta.sum() + alpha.sum()), lower=float(witness.sum()))


def test_a_solution_can_be_verified_by_anyone():
    arrays = [np.array([1.0, 2.0]), np.array([3.0]), np.array([5.5])]
    claimed = DualityGap(upper=6.0, lower=5.9)
    solution = Solution(
        Measured(), arrays[0], claimed, Status.OPTIMAL, 3, 0.1, (Record(0, 6.0, 5.5, 0.1),), "by hand", *arrays[1:]
    )
    assert solution.value == 6.0
    assert solution.certificate is claimed
    assert solution.verify() == DualityGap(6.0, 5.5), "recomputed, not copied"
    assert solution.history[0].relative_gap == pytest.approx(0.5 / 6.0)
    assert "array" not in repr(solution)
    shown = solution._repr_html_()
    assert "optimum in [5.9, 6]" in shown
    assert "optimal: the certificate proves" in shown
    assert "&lt;" in shown, "what a problem says of itself is no markup"


def test_notebooks_show_what_is_known(monkeypatch):
    from convexkernels import Gaussian, Stationarity, notebook
    from convexkernels.certificate import RigorousGap

    monkeypatch.setattr(notebook, "documentation_site", lambda: "https://example.org/site")
    assert "<td>5.9</td>" in DualityGap(upper=6.0, lower=5.9)._repr_html_()
    assert "rounding is 1.00e-03 of the gap" in RigorousGap(6.0, 5.9, charged=1e-3)._repr_html_()
    assert "nothing about other points" in Stationarity(1.0, 1e-9)._repr_html_()
    shown = Gaussian(0.25)._repr_html_()
    assert "<td>0.25</td>" in shown
    assert 'href="https://example.org/site/api/convexkernels.Gaussian.html"' in shown
    assert "href" not in (Gaussian(1.0) + Gaussian(2.0))._repr_html_(), "a sum has no page"
