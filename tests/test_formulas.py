"""Every formula of the papers that the library implements is found in the index, and every key means something."""

import pytest

from docs.formulas import PAGE, index, page, parse, sources, unresolved

# Formulas of parts whose docstrings have no keys yet; an entry that is resolved has to go.
PENDING: set[str] = set()


@pytest.fixture(scope="module")
def uses():
    return index()


def test_every_implemented_formula_is_resolved(uses):
    assert unresolved(uses) == PENDING, "give what implements it the key, or say why it is not applicable"


def test_nothing_implemented_is_called_not_applicable(uses):
    table = sources()
    formulas = [(use, table[use.source].get("numbered", {}).get(use.place, {})) for use in uses]
    assert not [use for use, formula in formulas if "not_applicable" in formula]


def test_the_page_is_current(uses):
    assert PAGE.read_text(encoding="utf-8") == page(uses), "run `make formulas`"


def test_keys_are_read():
    text = "As in [CP20 (20), (21)] and [ST16\nLemma A.3], after [Gon85]; [[P11, P12], [P21, P22]] is a matrix."
    found = [("CP20", "(20)"), ("CP20", "(21)"), ("ST16", "Lemma A.3"), ("Gon85", "")]
    assert list(parse(text, sources())) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[CP20 24]", "is no place"),
        ("[CP20(24)]", "is no place"),
        ("[CP20 (20),]", "is no place"),
        ("[CP20 Theorem]", "is no place"),
        ("[CP20 (26)]", "lists no"),
        ("[ST16 Theorem 10]", "lists no"),
        ("[CP21 (24)]", "no source"),
    ],
)
def test_wrong_keys_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        list(parse(text, sources()))
