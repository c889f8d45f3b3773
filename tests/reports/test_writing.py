"""Text is made drawable: what a font has stays, what none has becomes one visible sign."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.reports import wrapping, writing
from musicsvc.reports.writing import SIGN


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("Été à Ω Мир", "Été à Ω Мир"),
        ("I \U0001f600 you", "I \U0001f600 you"),
        ("I \U0001fae8 you \U0001fae9", "I you"),  # emoji that no font has
        ("\U0001fae8", SIGN),
        ("♫ ♪", "♪ ♪"),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467 & ❤\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467 & ❤"),
        ("\U0001f1e9\U0001f1ea!", "\U0001f1e9\U0001f1ea!"),
        ("\ue000\U000f0000", SIGN * 2),
        ("\ud800", SIGN),
        ("a\x00b\x1fc", f"a{SIGN}b c"),
        ("a\t\n\r\u2003b", "a b"),
        ("\u0301a", f"{SIGN}a"),
        ("a \u0301", f"a {SIGN}"),
        ("\u202egnp\u2066.exe\ufeff", "gnp.exe"),
        ("", SIGN),
        ("\u200d\u3164", SIGN),
        ("𝓦𝓪𝓿𝓮 Ⅴ", "Wave V"),
        ("1\ufe0f\u20e3", "1\u20e3"),
        ("क\u0301", "क"),
        ("می‌خواهم", "می‌خواهم"),
        ("e\u0301", "é"),
        ("z" + "\u0301" * 50, "z" + "\u0301" * 3),
        ("தமிழ்", SIGN * 3),
    ],
)
def test_a_text_is_drawn_as_far_as_the_fonts_have_it(text: str, drawn: str) -> None:
    assert writing.drawable(text) == unicodedata.normalize("NFC", drawn)


@given(st.text(max_size=120))
def test_every_text_becomes_something_visible_that_one_font_has(text: str) -> None:
    drawn = writing.drawable(text)
    assert drawn.strip() == drawn != ""
    assert "  " not in drawn
    for cluster in writing.graphemes(drawn.replace(" ", "")):
        assert writing.covered(cluster.replace("\u200c", "").replace("\u200d", "")), ascii(cluster)


@given(st.text(max_size=120))
def test_wrapping_changes_nothing_but_where_lines_may_end(text: str) -> None:
    drawn = writing.drawable(text)
    marks = dict.fromkeys(map(ord, (wrapping.BREAK, wrapping.NO_BREAK))) | {ord(wrapping.UNBROKEN_BLANK): " "}
    lines = wrapping.wrapping(drawn)
    assert lines.text.translate(marks) == lines.broken.translate(marks) == drawn


@pytest.mark.parametrize(
    ("title", "parts"),
    [
        ("夜明けのクラッシュ", ["夜", "明けの", "クラッシュ"]),
        ("Tokyo 東京", ["Tokyo", "東京"]),
        ("새벽의 노래를", ["새벽의", "노래를"]),
        ("Moscow – Tver", ["Moscow\u00a0–", "Tver"]),
        ("Night of a Wolf", ["Night", "of", "a\u00a0Wolf"]),
        ("Я и ты в доме", ["Я\u00a0и\u00a0ты", "в\u00a0доме"]),
        ("A B C Song", ["A", "B\u00a0C\u00a0Song"]),
        ("Love \U0001f33a I", ["Love", "\U0001f33a", "I"]),
        ("Plan B – I \U0001f33a", ["Plan", "B\u00a0–", "I\u00a0\U0001f33a"]),
    ],
)
def test_lines_end_between_words_and_phrases(title: str, parts: list[str]) -> None:
    assert wrapping.wrapping(title).words == parts
