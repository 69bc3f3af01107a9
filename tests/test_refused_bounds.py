"""Bounds for plain numbers refuse what their theorems are not about, and what no float holds."""

import numpy as np
import pytest

from convexkernels import Gaussian, Hinge, Interpolation, InvalidInputError, LeastSquares, bounds

CELLS = bounds.CellNumbers(np.array([1e-3, 1e-2]), np.array([0.2, 0.3]), np.array([0.4, 0.6]), 0.5, 100, 2)
TABLE = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))


def of_cells(**numbers):
    return bounds.cells_risk_bound(CELLS._replace(**numbers), alpha=1.0, p=0.5, tau=1.0, constant=1.0)


def selected(cells=CELLS, **settings):
    known = {"alpha": 1.0, "beta": 30.0, "p": 0.2, "tau": 1.0, "n_pairs": 9, "largest_label": 1.0, "constant": 1.0}
    return bounds.selected_risk_bound(cells, **known | settings)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: bounds.hierarchical_risk_bound(bounds.SVMNumbers(0.1, 0.1, 9, 2.0), tau=1.0, constant=None),
            "Theorem 3.2 says there is",
        ),
        (
            lambda: bounds.excess_risk_bound(bounds.ComplexityNumbers(0.1, 1.0, 9), failure=0.1, constant=None),
            "Theorem 3 says there is",
        ),
        (
            lambda: bounds.excess_risk_bound(bounds.ComplexityNumbers(0.1, 1.0, 9), failure=1.0, constant=1.0),
            "less than 1",
        ),
        (lambda: bounds.cells_risk_bound(CELLS, alpha=1.0, p=0.5, tau=1.0, constant=None), "Theorem 4 says there is"),
        (lambda: bounds.local_entropy(0.1, 1.0, 0.5, 2, p=0.5, constant=None), "Theorem 12 says there is"),
        (lambda: bounds.local_entropy(0.1, 1.0, 1.5, 2, p=0.5, constant=1.0), "width must be"),
        (
            lambda: bounds.cells_risk_bound(CELLS._replace(radius=0.25), alpha=1.0, p=0.5, tau=1.0, constant=1.0),
            "largest width is 0.3",
        ),
        (
            lambda: bounds.cells_risk_bound(CELLS, alpha=1.0, p=0.5, tau=1.0, constant=1.0, region=[False, False]),
            "region must name at least one of 2 cells",
        ),
        (
            lambda: bounds.selected_risk_bound(
                CELLS, alpha=1.0, beta=3.0, p=0.2, tau=1.0, n_pairs=9, largest_label=1.0, constant=1.0
            ),
            "pass a larger beta",
        ),
        (lambda: bounds.interior_radii([[0.0, 1.0], [0.0, 1.0]]), "two different points"),
        (lambda: bounds.cell_schedule(100, 1.0, 2, beta=3.0, constants=(1.0, 1.0, 1.0)), "c3 must be less than c1"),
        (
            lambda: bounds.cell_schedule(100, 1.0, 2, beta=3.0, constants=(1, 1)),
            r"constants must be 3 finite numbers > 0, one per constant c1, c2, c3, got \(1, 1\)",
        ),
        (lambda: bounds.cell_schedule(100, 1.0, 2, beta=2.0), "beta must be"),
        (lambda: bounds.net_gap(1.0, 2, beta=2.5, p=0.5), "p must be"),
        (lambda: bounds.rate_gap(1.0, 2, beta=0.0, p=0.1), "beta must be a finite number > 2, got 0.0"),
        (lambda: bounds.rate_gap(1.0, 2, beta=-1.0, p=0.1), "beta must be"),
        (lambda: bounds.rate_gap(-5.0, 2, beta=3.0, p=0.1), "alpha must be a finite number >= 1, got -5.0"),
        (lambda: bounds.cells_risk_bound(CELLS._replace(n=0), alpha=1.0, p=0.5, tau=1.0, constant=1.0), "n must be"),
        (lambda: bounds.net_constants(-1.0, 2, p=0.1), "alpha must be"),
        (lambda: bounds.net_constants(1.0, 2, p=1.5), "p must be"),
        (
            lambda: bounds.selected_risk_bound(
                CELLS._replace(radius=1.0),
                **{
                    "alpha": 1.0,
                    "beta": 3.0,
                    "p": 0.2,
                    "tau": 1.0,
                    "n_pairs": 9,
                    "largest_label": 1.0,
                    "constant": 1.0,
                },
            ),
            "fit with smaller cells",
        ),
        (lambda: selected(alpha=0.9), "alpha must be a finite number >= 1, got 0.9"),
        (lambda: selected(CELLS._replace(n=2)), "rows of D1 must be a whole number >= 3"),
        (lambda: selected(CELLS._replace(lams=np.ones(37))), r"\(3 / radius\)\^d = 36 cells or fewer, got 37"),
        (lambda: of_cells(masses=[0.5, -0.1]), "masses must be 2 finite numbers >= 0, one per cell"),
        (lambda: of_cells(masses=[1.0]), "masses must be 2 finite numbers >= 0"),
        (lambda: of_cells(lams=[1e-3, -1e-3]), "lams must be 2 finite numbers > 0"),
        (lambda: of_cells(lams=[1e-3, "small"]), "lams must be 2 finite numbers > 0"),
        (lambda: of_cells(widths=[0.2, 0.0]), "widths must be 2 finite numbers > 0"),
        (lambda: of_cells(d=0), "d must be a whole number >= 1"),
        (lambda: of_cells(masses=[5.0, 5.0]), "masses must have the sum 1, got 10; pass all cells"),
        (lambda: of_cells(masses=[0.0, 0.6]), "masses must have the sum 1, got 0.6"),
        (lambda: of_cells(lams=[], widths=[], masses=[]), r"lams must be 1 finite numbers > 0, one per cell, got \[\]"),
        (lambda: of_cells(lams=[[1.0], [1.0, 2.0]]), "lams cannot become an array of numbers"),
        (
            lambda: bounds.cells_risk_bound(CELLS, alpha=1.0, p=0.5, tau=1.0, constant=1.0, region=[0, 1]),
            "True or False",
        ),
        (lambda: bounds.cells_risk_bound(None, alpha=1.0, p=0.5, tau=1.0, constant=1.0), "cells must be CellNumbers"),
        (lambda: selected(CELLS._replace(lams=0.1)), "lams must be 1 finite numbers > 0, one per cell, got 0.1"),
        (lambda: selected(CELLS._replace(lams=[])), r"lams must be 1 finite numbers > 0, one per cell, got \[\]"),
        (lambda: selected("cells"), "cells must be CellNumbers, got 'cells'; CellNumbers.of makes them"),
        (lambda: bounds.hierarchical_risk_bound(0.1, tau=1.0, constant=1.0), "svm must be SVMNumbers, got 0.1"),
        (
            lambda: bounds.excess_risk_bound(0.1, failure=0.1, constant=1.0),
            "numbers must be ComplexityNumbers, got 0.1",
        ),
        (lambda: bounds.joined_cover([], []), "radii must be 1 finite numbers >= 0, one per cell"),
        (lambda: bounds.joined_cover(1.0, 1.0), "radii must be 1 finite numbers >= 0, one per cell, got 1.0"),
        (lambda: bounds.joined_entropy([], [], p=0.5), "factors must be 1 finite numbers >= 0, one per cell"),
        (lambda: bounds.joined_entropy([[1], [2, 3]], [1.0, 1.0], p=0.5), "factors cannot become an array"),
        (lambda: bounds.interior_radii([[0.0], [1.0], [0.0]]), "got 3 rows, 2 of them different; drop the doubles"),
        (lambda: bounds.interior_radii([[0.0], [1e-200]]), "nearer than 1e-150, .*pass centers multiplied by a number"),
        (lambda: bounds.lipschitz_constant(np.array(["hinge", "hinge"]), 2), "loss must be 'hinge' or 'logistic'"),
        (lambda: bounds.approximation_error("rbf", TABLE, TABLE[:, 0], 0.1, loss=Hinge()), "kernel must be a Kernel"),
        (lambda: bounds.approximation_error(Gaussian(), TABLE, TABLE[:, 0], 0.1, loss="hinge"), "loss must be a loss"),
        (
            lambda: bounds.approximation_error(Gaussian(), TABLE, TABLE[:, 0], 0.1, loss=LeastSquares(), tol="small"),
            "tol must be a finite number > 0, got 'small'",
        ),
        (lambda: bounds.cells_entropy(CELLS._replace(widths=[0.2, -0.2]), p=0.4, constant=1.0), "widths must be 2"),
        (lambda: bounds.lipschitz_constant("least_squares", 2), "no Lipschitz constant"),
        (lambda: bounds.approximation_error(Gaussian(), TABLE, TABLE[:, 0], 0.1, loss=Interpolation()), "has no risk"),
        (
            lambda: bounds.approximation_error(
                Gaussian(), TABLE, TABLE[:, 0], 0.1, loss=LeastSquares(), masses=np.r_[0.0, np.ones(59)]
            ),
            "leave out rows without mass",
        ),
    ],
)
def test_bounds_refuse(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bounds.smallest_sample(0.01, 54, beta=3.0), "margin=0.01, d=54, .* 10\\^372.8.*pass a larger margin"),
        (lambda: bounds.smallest_sample(1e-320, 1, beta=0.5), "pass a larger margin"),
        (lambda: bounds.cover_numbers(1e-6, 54), "radius=1e-06 .* d=54 .* 10\\^340.3.*pass a larger radius"),
        (lambda: bounds.net_constants(1.0, 800, p=0.1, c=0.1), "d=800, p=0.1 and c=0.1 .*pass a smaller alpha or d"),
        (lambda: bounds.net_constants(600.0, 2, p=0.1), "alpha=600.*pass a smaller alpha"),
        (lambda: bounds.cell_nets(1000, 60, 1e-6), "radius=1e-06, d=60 and n=1000 .* 10\\^-363.*pass a larger radius"),
        (lambda: bounds.cell_schedule(9, 1.0, 400, beta=3.0, constants=(10.0, 1.0, 0.5)), r"constants=\(10.0, 1.0"),
        (lambda: bounds.cell_schedule(9, 1.0, 400, beta=3.0, constants=(0.1, 1.0, 0.05)), r"constants=\(0.1, 1.0"),
        (lambda: bounds.joined_entropy([3.0, 2.0], [1e-3, 1e-3], p=0.001), "2 cells for p=0.001 .*pass a larger p"),
        (lambda: bounds.joined_cover(np.ones(400), np.full(400, 10.0)), "product of the numbers is about 10\\^400,"),
        (lambda: bounds.local_entropy(0.1, 1.0, 0.1, 2, p=0.001, constant=1.0), "p=0.001, d=2 .*larger p or width"),
        (lambda: bounds.cells_entropy(CELLS, p=0.0005, constant=1.0), "p=0.0005, d=2 and width=0.2 in a ball"),
        (
            lambda: bounds.selected_risk_bound(
                CELLS,
                **{"alpha": 1.0, "beta": 30.0, "p": 0.2, "tau": 1.0, "n_pairs": 9, "constant": 1.0},
                largest_label=1e200,
            ),
            r"largest_label=1e\+200 .*scale labels",
        ),
        (lambda: bounds.learning_rate(1e308, 1), r"alpha must be .* <= 1e\+100, got 1e\+308"),
        (lambda: bounds.learning_rate(1.0, 10**400), r"d must be at most 1e\+15, got about 10\^400; pass fewer"),
        (lambda: bounds.cell_schedule(10**400, 1.0, 2, beta=3.0), r"n must be at most 1e\+300, got about 10\^400"),
        (lambda: bounds.cell_schedule(10**9, 1.0, 1, beta=4.0, constants=(1e-323, 1.0, 5e-324)), "lam for n=10"),
        (lambda: bounds.cell_schedule(9, 1.0, 1, beta=4.0, constants=(1.0, 1.0, 5e-324)), "width .* larger c3"),
        (lambda: bounds.rate_gap(1.0, 2, beta=1e308, p=0.1), r"beta must be .* <= 1e\+100, got 1e\+308"),
        (lambda: bounds.convolution_constant(1e200, 2, q=1e200), r"q must be .* <= 1e\+100, got 1e\+200"),
        (lambda: bounds.cover_numbers(1e-320, 1, c=np.float32(0.5)), "pass a larger radius"),
        (lambda: bounds.joined_cover([1.5e308, 1.5e308], [2, 2]), r"the radius is about 10\^308.*pass smaller radii"),
        (
            lambda: bounds.hierarchical_risk_bound(bounds.SVMNumbers(0.1, 0.1, 9, 2.0), tau=1e308, constant=1.0),
            r"tau=1e\+308 and constant=1 is out of the range of floats; .*smaller tau",
        ),
        (
            lambda: bounds.hierarchical_risk_bound(bounds.SVMNumbers(0.0, 0.1, 9, 0.0), tau=1e308, constant=1.0),
            r"tau=1e\+308 and constant=1 is out of the range of floats",
        ),
        (
            lambda: bounds.excess_risk_bound(bounds.ComplexityNumbers(1e200, 1e200, 9), failure=0.1, constant=1.0),
            r"complexity=1e\+200, lipschitz=1e\+200, .* out of the range",
        ),
        (lambda: selected(tau=1e308), r"largest_label=1 and tau=1e\+308 .*scale labels, or pass a smaller tau"),
        (lambda: selected(tau=1e300, constant=1e10), r"tau=1e\+300 and constant=1e\+10 is out of the range of floats"),
        (lambda: selected(n_pairs=10**400), r"n_pairs must be at most 1e\+300"),
        (
            lambda: bounds.cells_risk_bound(CELLS, alpha=1.0, p=0.5, tau=1e308, constant=1e10),
            r"tau=1e\+308 and constant=1e\+10 is out of the range of floats; .*smaller tau",
        ),
        (lambda: bounds.convolution_constant(200.0, 2), "alpha=200, d=2, .*pass a smaller alpha"),
        (lambda: bounds.convolution_constant(1.0, 2, q=20.0, norm=1e16), r"q=20 and norm=1e\+16"),
        (
            lambda: bounds.cells_risk_bound(CELLS._replace(d=784), alpha=1.0, p=0.5, tau=1.0, constant=1.0),
            r"widths from 0.2 to 0.3 in d=784 .*candidates=\(lams, widths\)",
        ),
    ],
)
def test_what_no_float_holds_is_refused_by_name(make, words):
    with pytest.raises(InvalidInputError, match=words):
        make()


@pytest.mark.filterwarnings("error")
def test_cells_may_be_lists_and_without_mass():
    """A cell that no point falls into adds nothing to what is estimated, and masses are sums that were rounded."""
    as_lists = bounds.CellNumbers([1e-3, 1e-2], [0.2, 0.3], [0.4, 0.6], 0.5, 100, 2)
    assert of_cells() == bounds.cells_risk_bound(as_lists, alpha=1.0, p=0.5, tau=1.0, constant=1.0)
    assert selected() == selected(as_lists)
    assert bounds.cells_entropy(as_lists, p=0.4, constant=1.0) == bounds.cells_entropy(CELLS, p=0.4, constant=1.0)
    empty = of_cells(masses=[0.0, 1.0])
    squares = 1e-3 / 0.04 + 1e-2 / 0.09 + 1.5**2 * 0.09 + 0.5 * (1.0 / 1e-2 * 0.3**-6) ** 0.5 / 100.0 + 0.01
    assert empty.value == pytest.approx(squares)
    assert of_cells(masses=np.float32([0.7, 0.3])).value == pytest.approx(of_cells(masses=[0.7, 0.3]).value)


@pytest.mark.filterwarnings("error")
def test_what_floats_hold_is_not_refused():
    """Close to the end of the range, and 0 where functions of all cells are 0."""
    assert bounds.smallest_sample(0.01, 44, beta=3.0) == pytest.approx(200.0**132)
    assert bounds.smallest_sample(1e300, 3, beta=3.0, c=1e-300) == 1
    assert bounds.cover_numbers(1e-5, 54)[1] == pytest.approx((1.0 + 2e5) ** 54)
    assert bounds.joined_entropy([0.0, 0.0], [1.0, 2.0], p=0.001) == 0.0
    assert bounds.joined_entropy([1e-3], [1.0], p=0.004) == pytest.approx(2e-3 * (3.0 * np.log(4.0)) ** 125.0)
    assert bounds.convolution_constant(1.0, 2, norm=0.0) == 0.0
    assert bounds.local_entropy(0.1, 1.0, 0.1, 2, p=0.001, constant=0.0) == 0.0
    assert bounds.local_entropy(1.0, 0.5, 0.5, 2, p=1e-320, constant=3.0) == 3.0
    assert bounds.joined_cover([3e200, 4e200], [2, 3]) == (pytest.approx(5e200), 6.0)
    assert bounds.joined_cover([3e-200, 4e-200], [2, 3]) == (pytest.approx(5e-200), 6.0)
    assert bounds.joined_cover([0.0, 0.0], [1, 1]) == (0.0, 1.0)
    np.testing.assert_allclose(bounds.interior_radii([[0.0], [1e-149]]), 5e-150)
    assert bounds.learning_rate(1e100, 1) == 1.0
    assert [net.tolist() for net in bounds.cell_nets(1, 1, 1e-7)] == [[1e-7], [1e-7]]
    assert bounds.net_constants(1.0, 300, p=0.1, c=0.35)[0] == pytest.approx(3.0**301 * 0.35**-300)
    assert bounds.hierarchical_risk_bound(bounds.SVMNumbers(0.1, 0.1, 10**30, 2.0), tau=1.0, constant=1.0).value < 1.0
