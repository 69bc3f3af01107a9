"""The tutorial and the model script at reduced size say what they should."""

from importlib import import_module

import pytest

from models import hierarchical_gaussian

listening_to_features = import_module("examples.10_listening_to_features")


def test_tutorial_finds_the_two_features_that_matter(tmp_path, capsys):
    model = listening_to_features.main(["--quick", "--out", str(tmp_path)])
    assert model.n_features_in_ == 22
    assert model.feature_relevance_[:2].sum() > 0.5
    assert "certificate" in capsys.readouterr().out
    assert {p.name for p in tmp_path.iterdir()} == {"relevance.png", "risks.png", "tree.png"}


def test_both_searches_lower_the_error_of_their_start(tmp_path, capsys):
    errors = hierarchical_gaussian.main(["--quick", "--out", str(tmp_path)])
    assert errors["gradients"] < errors["start"]
    assert errors["published"] < errors["start"]
    assert capsys.readouterr().out.count("certificate") == 2


def test_a_table_of_its_own_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match="updrs"):
        hierarchical_gaussian.main(["--quick", "--data", str(tmp_path), "--out", str(tmp_path)])
