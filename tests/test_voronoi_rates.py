"""The script on learning rates refuses functions that are no examples, and says where candidates come from."""

import pytest

from models import voronoi_rates


@pytest.mark.parametrize("alpha", ["2.5", "4.5", "20.5"])
def test_functions_that_are_smoother_than_alpha_says_are_refused(alpha, capsys):
    with pytest.raises(SystemExit):
        voronoi_rates.main(["--quick", "--alpha", alpha])
    shown = " ".join(capsys.readouterr().err.split())
    assert f"--alpha: for {alpha} the function" in shown
    assert "is a polynomial, of any smoothness; pass a number" in shown
    assert f"such as {float(alpha) + 0.5:g}" in shown


@pytest.mark.parametrize("alpha", ["0.5", "inf", "nan", "-1.5"])
def test_smoothness_that_the_theorems_do_not_know_is_refused(alpha, capsys):
    with pytest.raises(SystemExit):
        voronoi_rates.main(["--quick", "--alpha", alpha])
    assert "is not a number >= 1" in capsys.readouterr().err


def test_what_is_printed_says_which_rows_had_nets(monkeypatch, capsys, tmp_path):
    """As `learners` has them."""
    none = dict.fromkeys(("schedule", "schedule of T", "TV-VP-SVM"), (1.0, 1.0))
    monkeypatch.setattr(voronoi_rates, "excess_risks", lambda n, repeat, options: none)
    seen = []
    monkeypatch.setattr(voronoi_rates, "draw", lambda sizes, risks, options: seen.append(options))
    voronoi_rates.main(["--sizes", "250", "1000", "2000", "--repeats", "2", "--alpha", "1.5", "--out", str(tmp_path)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    said = {int(line[0]): line[1] for line in lines if line and line[0].isdigit()}
    assert said == {250: "nets", 1000: "nets", 2000: "grid"}
    for n, source in said.items():
        candidates = voronoi_rates.learners(n, seen[0])["TV-VP-SVM"].selection.candidates
        assert (candidates is not None) == (source == "nets")
