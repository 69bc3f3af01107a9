"""Rigorous bounds against ball arithmetic: right on random problems, and wrong ones are noticed."""

import dataclasses

import pytest

from convexkernels.rigorous import candidates, compositions, kernels, matrices, rounding, tessellated
from proofs_check.exact.cases import certified, check, main

MODULES = (candidates, compositions, kernels, matrices, rounding, tessellated)


def test_bounds_hold_on_random_problems():
    wrong = [trial for trial in range(250) if not check(7, trial)[0] <= 0.0]
    assert wrong == []


def test_radii_of_zero_are_noticed(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(module, "gamma", lambda n: 0.0)
    assert any(check(0, trial)[0] > 0.0 for trial in range(60))


def test_bounds_without_what_was_charged_are_noticed():
    def bold(*arguments):
        gap = certified(*arguments)
        return dataclasses.replace(gap, upper=gap.upper - gap.charged, lower=gap.lower + gap.charged)

    assert sum(check(0, trial, bold)[0] > 0.0 for trial in range(20)) > 10


@pytest.mark.parametrize("move", [1.0, -1.0])
def test_a_point_that_is_not_feasible_is_noticed(move):
    def moved(*arguments):
        gap = certified(*arguments)
        dual = gap.evidence.dual.copy()
        dual[0, 0] += move
        return dataclasses.replace(gap, evidence=dataclasses.replace(gap.evidence, dual=dual))

    noticed = 0
    for trial in range(20):
        try:
            noticed += check(0, trial, moved)[0] > 0.0
        except ArithmeticError:
            noticed += 1
    assert noticed > 10


def test_the_command_counts_and_fails_when_it_should(capsys):
    assert main(["--trials", "5", "--seed", "3"]) == 0
    assert "5 problems, 0 wrong" in capsys.readouterr().out
