"""Avatars: initials of any name on a colour that depends on the account."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsvc.reports.art import avatars
from tests.reports.pictures import contrast, difference, opened
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Mara Quint", "MQ"),
        ("jönas", "J"),
        ("ana maría de la cruz", "AC"),
        ("dj_shadow", "DS"),
        ("Анна Соколова", "АС"),
        ("Νίκος Παππάς", "ΝΠ"),
        ("محمد علي", "م\u2009ع"),
        ("श्रीनिवास त्रिपाठी", "श्री"),
        ("เอกชัย ใจดี", "อ"),
        ("山田太郎", "山"),
        ("김 민수", "김"),
        ("ß", "ß"),
        ("50 Cent", "5C"),
        ("\U0001f600\U0001f3b5", avatars.NAMELESS),
        ("", avatars.NAMELESS),
    ],
)
def test_initials_are_those_that_readers_of_the_script_expect(name: str, letters: str) -> None:
    assert avatars.initials(name) == letters


def test_an_avatar_is_a_png_of_256_by_256_and_always_the_same() -> None:
    first = avatars.avatar("Mara Quint", 7)
    assert opened(first).size == (256, 256)
    assert avatars.avatar("Mara Quint", 7) == first


def test_another_account_has_another_colour() -> None:
    corners = {opened(avatars.avatar("Mara Quint", seed)).getpixel((0, 0)) for seed in range(20)}
    assert len(corners) > 5


def test_initials_stay_within_the_circle_that_clients_cut() -> None:
    bare = avatars.avatar("M", 7)
    for name in ("Wanda Wilkins", "श्रीनिवास", "山", "jönas", "Ǆ Ǆ"):
        box = difference(avatars.avatar(name, 7), bare)
        assert box is not None
        assert min(box) >= 45
        assert max(box) <= 256 - 45


@pytest.mark.parametrize("ground", avatars.GROUNDS)
def test_white_can_be_read_on_every_ground(ground: tuple[str, str]) -> None:
    assert min(contrast(avatars.INK, colour) for colour in ground) >= 4.5


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(st.text(max_size=60), st.integers(1, 2**53 - 1))
def test_no_name_breaks_an_avatar(name: str, seed: int) -> None:
    assert opened(avatars.avatar(name, seed)).size == (256, 256)
