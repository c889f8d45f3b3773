"""Badges of shared reports."""

from xml.etree import ElementTree as ET

import pytest

from musicsvc.reports import badge

SVG = "{http://www.w3.org/2000/svg}"
NAMES = [
    "",
    "i" * 255,
    "W" * 255,
    "\U0001f3a7" * 255,
    "e\u0301" * 99,
    "\u05d0" * 255,
    "]]><b>&'\" \u202e",
    "a\ufffe\tb",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_badge_is_narrow_and_valid_whatever_the_name(name: str) -> None:
    drawn = ET.fromstring(badge.svg(name, "12,345 plays", f"{name}: 12,345 plays"))  # noqa: S314 - our own
    shown, number = (str(each.text or "") for each in drawn.iter(f"{SVG}text"))
    whole_name = name.replace("\ufffe", "\ufffd")
    assert (shown == whole_name, number) == (len(name) < 100, "12,345 plays")
    assert whole_name.startswith(shown.removesuffix("…"))
    whole, beside = (int(each.attrib["width"]) for each in drawn.iter(f"{SVG}rect"))
    _, inner = drawn.iter(f"{SVG}svg")
    assert (whole, whole - beside) == (int(drawn.attrib["width"]), int(inner.attrib["width"]))
    assert 90 < whole < 360
