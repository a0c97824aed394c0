"""Reward expressions: what is read, and the one line that says what cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilde.data import UserError
from ilde.rewards.expression import TERMS, needs_demos, needs_features, parse_expression


def read(text: str) -> list[tuple[str, float]]:
    return [(term.name, term.weight) for term in parse_expression(text)]


def test_the_method_of_the_paper() -> None:
    assert read("vail + 10*giril + entropy") == [("vail", 1.0), ("giril", 10.0), ("entropy", 1.0)]


@pytest.mark.parametrize("text", ["vail+10*giril", " vail +10 * giril ", "vail + 1e+1*giril", "vail + 10.0*giril"])
def test_spaces_and_ways_to_write_a_number_do_not_matter(text: str) -> None:
    assert read(text) == [("vail", 1.0), ("giril", 10.0)]


@settings(deadline=None)
@given(
    names=st.lists(st.sampled_from(TERMS), min_size=1, unique=True),
    weights=st.lists(st.floats(1e-300, 1e300), min_size=len(TERMS), max_size=len(TERMS)),
    space=st.sampled_from(["", " ", "  "]),
)
def test_what_is_written_is_what_is_read(names: list[str], weights: list[float], space: str) -> None:
    pairs = list(zip(names, weights, strict=False))
    assert read(f"{space}+{space}".join(f"{weight!r}{space}*{space}{name}" for name, weight in pairs)) == pairs


def complaint(text: str) -> str | None:
    try:
        parse_expression(text)
    except UserError as error:
        return str(error)
    return None


@settings(deadline=None)
@given(st.text(alphabet="vailgre+*-.0123456789e ", max_size=20))
def test_whatever_cannot_be_read_is_quoted_in_one_line(text: str) -> None:
    said = complaint(text)
    assert said is None or (repr(text) in said and "\n" not in said)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot read ''; write for example"),
        ("vail + ", "cannot read ''"),
        ("vail - giril", "cannot read 'vail - giril'"),
        ("10 giril", "cannot read '10 giril'"),
        ("-1*giril", "cannot read '-1[*]giril'"),
        ("vial", "unknown term 'vial'; did you mean vail?"),
        ("zzz + vail", "unknown term 'zzz'; terms are env, constant, gail, vail, giril, icm, entropy, e3b"),
        ("vail + 2*vail", "vail stands twice; add the weights up"),
        ("0*vail", "a weight must be positive and finite, received 0"),
        ("1e999*vail", "a weight must be positive and finite, received 1e999"),
        ("1.2.3*vail", "'1.2.3' is not a number"),
    ],
)
def test_each_mistake_is_named(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_expression(text)


def test_an_unknown_term_that_ends_in_e_is_named_without_spaces_too() -> None:
    with pytest.raises(UserError, match="unknown term 'ilde'"):
        parse_expression("ilde+vail")


def test_which_terms_need_demonstrations_and_features() -> None:
    assert [term for term in TERMS if needs_demos(parse_expression(term))] == ["gail", "vail", "giril", "icm"]
    assert [term for term in TERMS if not needs_features(parse_expression(term))] == ["env", "constant"]
    assert needs_demos(parse_expression("env + giril"))
    assert needs_features(parse_expression("env + entropy"))
