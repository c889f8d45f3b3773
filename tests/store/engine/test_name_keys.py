"""Keys of names: what is equal, what is not, and that a key is its own key."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.engine import name_index, name_keys
from musicsvc.store.engine.name_keys import folded_key, name_key

ALIKE = [
    ("a\u2010ha", "a-ha"),
    ("a\u2011ha", "a-ha"),
    ("Song \u2013 Live", "Song - Live"),
    ("Minus \u22125", "Minus -5"),
    ("\u201cHeroes\u201d", '"Heroes"'),
    ("\u201eHelden\u201c", '"Helden"'),
    ("12\u2033 Mix", '12" Mix'),
    ("Don\u2019t Stop", "Don't Stop"),
    ("Don\u00b4t Stop", "Don't Stop"),
    ("O\u02bcBrien", "O'Brien"),
    ("Bjo\u0308rk", "Björk"),
    ("\u212b", "\u00c5"),
    ("Two  Blanks", "Two Blanks"),
    ("No\u00a0Break\u3000Blank", "No Break Blank"),
    (" Tab\tand\u2003end\u2028", "Tab and end"),
    ("Zero\u200bWidth", "ZeroWidth"),
    ("\ufeffMark", "Mark"),
    ("So\u00adft", "Soft"),
    ("\u202bRight\u202c", "Right"),
    ("a \u200b b", "a b"),
    ("e\u200b\u0301", "é"),
    ("\u2764\ufe0f", "\u2764"),
    ("\uff07\uff02\uff0d", "'\"-"),
]
DIFFERENT = [
    ("KISS", "Kiss"),
    ("Zoë", "Zoe"),
    ("AB", "A B"),
    ("a-ha", "aha"),
    ("Don't", "Dont"),
    ("½", "1/2"),
    ("1", "1\u20e3"),
]
TEXT = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("".join(name_keys._ASCII) + " \u200b\u0301\u0338eo<"))
)


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_names_that_look_alike_have_one_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other) == other
    assert folded_key(one) == folded_key(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_names_have_other_keys(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@given(TEXT)
def test_a_key_is_its_own_key(text: str) -> None:
    assert name_key(name_key(text)) == name_key(text)
    assert folded_key(folded_key(text)) == folded_key(text) == folded_key(name_key(text))
    assert not set(folded_key(text)) & set(name_index.NAME_BEGINS + name_index.WORD_BEGINS)
    for form in ("NFC", "NFD"):
        assert name_key(unicodedata.normalize(form, text)) == name_key(text) or not name_keys._plain(text)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126)), st.text(st.characters(codec="ascii")))
def test_a_usual_name_is_its_own_key(word: str, text: str) -> None:
    assert name_key(word) == word
    assert folded_key(text) == name_keys._plain(text).lower()


def test_format_characters_and_controls_are_dropped_or_blanks() -> None:
    every = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) in {"Cf", "Cc"}]
    assert {name_key(f"a{char}b") for char in every} == {"ab", "a b"}
