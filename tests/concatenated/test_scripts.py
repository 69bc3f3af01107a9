"""The tables of the paper and the tutorial run at reduced size, and say what they should."""

from importlib import import_module

import numpy as np
import pytest

from models import concatenated

straightening_a_kink = import_module("examples.12_straightening_a_kink")


def test_quick_tables_have_every_pair_and_the_sign_of_the_improvement(capsys, tmp_path):
    results = concatenated.main(["--quick", "--out", str(tmp_path)])
    shown = capsys.readouterr().out
    assert set(results) == {1, 2}
    for table, cells in results.items():
        assert set(cells) == {(pair, h) for t, pair, h in concatenated.PAPER if t == table}
        for (pair, h), errors in cells.items():
            assert errors.shape == (1, 4)
            assert np.isfinite(errors).all()
            single, first, second = np.median(errors[:, :3], axis=0)
            printed = concatenated.PAPER[table, pair, h]
            assert 0.4 < single / printed[0] < 2.5
            if h == "h1":  # the function for which two layers are much better in the paper
                assert min(first, second) < single
    assert shown.count("Mat-TP o Poly") == 12


def test_starts_of_the_choice_are_an_option_that_is_said(capsys, monkeypatch, tmp_path):
    """As many as asked for, also where --restarts has more; what is known with another number is run again."""
    asked, argv = [], ["--table", "2", "--pairs", "Gauss o Poly", "--functions", "h1", "--draws", "1", "--jobs", "1"]
    argv += ["--out", str(tmp_path)]

    class Chosen:
        lam, mu = 1.0, 1.0

    monkeypatch.setattr(concatenated, "select_weights", lambda *_, n_restarts, **__: asked.append(n_restarts) or Chosen)
    monkeypatch.setattr(concatenated.OuterLearning, "solve", lambda problem, *_, **__: None)
    monkeypatch.setattr(concatenated, "single_layer", lambda *_: None)
    monkeypatch.setattr(concatenated, "error_of", lambda *_: 1.0)

    def one_draw(*job):
        concatenated.functions(*job)
        return (1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(concatenated, "one_draw", one_draw)
    monkeypatch.setattr(concatenated, "save_figure", lambda *_: None)
    concatenated.main([*argv, "--restarts-of-choice", "12", "--restarts", "4"])
    assert "by held-out choice from 12 starts, then 4 starts" in capsys.readouterr().out
    concatenated.main([*argv, "--restarts-of-choice", "12", "--restarts", "4"])
    concatenated.main([*argv, "--restarts", "4"])
    assert asked == [12, 12, 4, 4]
    with pytest.raises(SystemExit):
        concatenated.main([*argv, "--restarts-of-choice", "0"])
    assert "--restarts-of-choice 0: a search has a start at least" in capsys.readouterr().err


def test_figures_of_errors_and_of_inner_maps(capsys, tmp_path):
    concatenated.main(["--quick", "--figures", "--pairs", "Mat-TP o Poly", "--functions", "h1", "--out", str(tmp_path)])
    names = {f"concatenated_figure_{number}_h1.png" for number in (4, 8, 11)}
    assert {p.name for p in tmp_path.iterdir()} == names
    assert capsys.readouterr().out.count("errors of single") == 2


def test_tutorial_learns_the_direction_of_the_kink(tmp_path, capsys):
    model = straightening_a_kink.main(["--quick", "--out", str(tmp_path)])
    origin, across, along = model.transform([[0.0, 0.0], [1.0, -1.0], [1.0, 1.0]])
    assert np.linalg.norm(along - origin) < 0.1 * np.linalg.norm(across - origin)
    assert "certificate" in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {"errors.png", "inner_map.png", "interpolants.png"}
