"""The tables of the paper and the tutorial run at reduced size, and say what they should."""

import numpy as np

from examples import straightening_a_kink
from models import concatenated


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


def test_tutorial_learns_the_direction_of_the_kink(tmp_path, capsys):
    model = straightening_a_kink.main(["--quick", "--out", str(tmp_path)])
    origin, across, along = model.transform([[0.0, 0.0], [1.0, -1.0], [1.0, 1.0]])
    assert np.linalg.norm(along - origin) < 0.1 * np.linalg.norm(across - origin)
    assert "certificate" in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {"errors.png", "inner_map.png", "interpolants.png"}
