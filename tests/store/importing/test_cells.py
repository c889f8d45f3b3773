"""Parsing of cells: dates, keys, scales, numbers, texts, URLs."""

import calendar
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from musicsvc.store.importing.cells import codes, dates, durations, names, numbers, times, words
from musicsvc.store.importing.cells.notations import Notation, Parse, PartlyError, Sample
from tests.support.notation_table import KINDS

FITS = {"date": dates.fit, "time": times.fit, "duration": durations.fit}
DEFAULTS = {"date": dates.day, "time": times.instant, "duration": durations.milliseconds}
PARSERS: dict[str, Any] = {
    "text": lambda cell: names.text(names.unmarked(cell), 99),
    "several names": lambda cell: names.several(cell, 99),
    "number": partial(numbers.whole, lowest=20, highest=400, first=True),
    "number of a track or disc": partial(numbers.place, lowest=1, highest=99),
    "yes or no": words.flag,
    "key": words.key,
    "scale": words.scale,
    "ISRC": codes.isrc,
    "UPC or EAN": codes.upc,
}
NOTATIONS = [(kind, each) for kind, notations in KINDS.items() for each in notations]


def meaning(parse: Any, cell: object) -> object:
    try:
        found = parse(cell)
    except PartlyError as error:
        return error.value
    return found.date if isinstance(found, dates.Day) else found


@pytest.mark.parametrize(("kind", "notation"), NOTATIONS, ids=[f"{kind}: {each.name}" for kind, each in NOTATIONS])
def test_each_notation_means_what_its_examples_say(kind: str, notation: Notation) -> None:
    assert notation.cells
    for cell, plain in notation.cells.items():
        sample = Sample([(2, cell)], (durations.FORMS | {"frames": durations.FRAMES}).get(notation.form, 0))
        parse, parse_plain = (FITS[kind](sample).parse, DEFAULTS[kind]) if kind in FITS else (PARSERS[kind],) * 2
        assert meaning(parse, cell) == meaning(parse_plain, plain), cell


@given(some.dates())
def test_a_whole_date_is_taken_as_it_stands(day: date) -> None:
    assert dates.day(day.isoformat()) == (day.isoformat(), None)
    assert dates.day(day) == (day.isoformat(), None)
    assert dates.day(f"{day} 00:00:00") == dates.day(f"{day}T12:30:00.5Z") == (day.isoformat(), None)


@given(some.integers(1, 9999), some.integers(1, 12))
def test_a_year_and_a_month_are_padded_to_their_first_day(year: int, month: int) -> None:
    assert dates.day(f" {year:04} ") == (f"{year:04}-01-01", "month")
    assert dates.day(f"{year:04}-{month:02}") == (f"{year:04}-{month:02}-01", "day")


@given(some.integers(1, 9999), some.integers(1, 12), some.integers(1, 31))
def test_only_real_dates_are_taken(year: int, month: int, day: int) -> None:
    text = f"{year:04}-{month:02}-{day:02}"
    if day <= calendar.monthrange(year, month)[1]:
        assert dates.day(text) == (text, None)
    else:
        with pytest.raises(ValueError, match="must be a date that exists"):
            dates.day(text)


@pytest.mark.parametrize(
    "value",
    [
        "2024-W01-1",
        "2024-13",
        "2024-00-10",
        "٢٠٢٤",
        "2024-01-01T",
        "2024-01-01 noon",
        "NA",
        -5,
        True,
    ],
)
def test_other_spellings_of_dates_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="date"):
        dates.day(value)


def test_dates_come_as_numbers_and_moments_too() -> None:
    assert dates.day(1999) == ("1999-01-01", "month")
    assert dates.day(datetime(2020, 2, 29, 23, 59)) == ("2020-02-29", None)  # noqa: DTZ001 - Parquet gives such


@given(some.sampled_from(words.NOTES))
def test_a_key_is_its_name_and_its_number(note: str) -> None:
    place = words.NOTES.index(note)
    for spelling in (
        note,
        note.lower(),
        f" {note} ",
        note.replace("#", "♯"),
        str(place),
        place,
        float(place),
        f"{place}.0",
    ):
        assert words.key(spelling) == note


def test_flats_are_the_sharps_below() -> None:
    assert [words.key(name) for name in ("Db", "Eb", "g♭", "A♭", "bb", "Cb", "Fb", "E#", "B#")] == [
        *("C#", "D#", "F#", "G#", "A#", "B", "E", "F", "C")
    ]


@pytest.mark.parametrize("value", ["H", "12", "C##", "1.5", "-2", "AM", "0A", "13B", True, [1], "１"])
def test_what_is_no_key_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="note"):
        words.key(value)


def test_the_circle_of_fifths_has_each_key_once() -> None:
    for letters in ("AB", "md"):
        found = [words.key(f"{place}{letter}") for letter in letters for place in range(1, 13)]
        assert sorted(map(str, found[:12])) == sorted(map(str, found[12:])) == sorted(words.NOTES)
        assert {key.scale for key in found[:12] if key} == {"Minor"}
    assert [str(words.key(key)) for key in ("8A", "5A", "8B", "3B", "1m", "6m", "1d", "12d")] == [
        *("A", "C", "C", "C#", "A", "G#", "C", "F")
    ]


def test_minus_one_is_no_key() -> None:
    assert words.key("-1") is None


@pytest.mark.parametrize(
    ("value", "scale"), [("major", "Major"), (" MINOR ", "Minor"), ("1", "Major"), (0, "Minor"), (1.0, "Major")]
)
def test_a_scale_is_its_name_or_its_mode(value: object, scale: str) -> None:
    assert words.scale(value) == scale


@pytest.mark.parametrize("value", ["dorian", "2", True, -1, "0.5"])
def test_what_is_no_scale_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="Major or Minor"):
        words.scale(value)


@pytest.mark.parametrize("blank", [None, "", " \t", float("nan")])
def test_a_blank_cell_is_nothing_for_every_kind(blank: object) -> None:
    kinds: list[Any] = [
        dates.day,
        words.key,
        words.scale,
        numbers.number,
        names.url,
        lambda cell: names.text(cell, 9),
    ]
    assert [kind(blank) for kind in kinds] == [None] * 6
    assert names.several(blank, 9) == []


@given(some.decimals(min_value=0, max_value=86_400_000, allow_nan=False, places=3))
def test_numbers_are_rounded_to_the_nearest_whole(number: Decimal) -> None:
    found = numbers.whole(str(number), 0, 86_400_000)
    assert found is not None
    assert abs(found - number) <= Decimal("0.5")


def test_halves_go_up_and_every_notation_is_read() -> None:
    cells = ["0.5", "1.5", "2.50", "2.33e-5", "1e3", "+7", "7.", ".5"]
    assert [numbers.whole(cell, 0, 1000) for cell in cells] == [1, 2, 3, 0, 1000, 7, 7, 1]


@pytest.mark.parametrize("value", ["1e1000", "inf", "nan", "1,5", "0x10", "1_0", "٣", "--1", "1e", True, [], "9" * 41])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="number"):
        numbers.number(value)


def test_numbers_outside_their_bounds_are_refused_before_rounding() -> None:
    for value in ("-0.1", "86400000.1", "1e300"):
        with pytest.raises(ValueError, match="between"):
            numbers.whole(value, 0, 86_400_000)


def test_texts_are_trimmed_and_counted_in_code_points() -> None:
    assert names.text(" 𝄞𝄞 ", 2) == "𝄞𝄞"
    assert names.text(1979, 9) == "1979"
    with pytest.raises(ValueError, match="longer than 2"):
        names.text("𝄞𝄞𝄞", 2)
    with pytest.raises(ValueError, match="NUL"):
        names.text("a\0b", 9)
    for other in (True, 1.5, {"a": 1}, b"x"):
        with pytest.raises(ValueError, match="text"):
            names.text(other, 9)


def test_several_are_parted_by_semicolons_or_come_as_a_list() -> None:
    assert names.several("A; B;;A ;", 9) == ["A", "B"]
    assert names.several(["A; B", None, "C"], 9) == ["A; B", "C"]


def test_signs_as_web_pages_write_them_are_read_in_names() -> None:
    assert names.several("A &amp; B;&#10;C &#39;n&#x27;&#10;D", 99) == ["A & B", "C 'n' D"]
    assert names.name(" &lt;3 &amp;amp; AT&T &copy; R&B;&nbsp;", 99) == "<3 &amp; AT&T &copy; R&B;"
    assert names.name("&nbsp;&#173;", 99) is None


LONGEST_URL = "http://a/" + "x" * 2039  # 2,048 characters


@pytest.mark.parametrize("url", ["http://a", "https://exämple.test/a?b#c", "HTTPS://a.test:8443/x", LONGEST_URL])
def test_absolute_addresses_are_taken(url: str) -> None:
    assert names.url(f" {url} ") == url


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a", "//a", "a.test", "http://", "http:///x", "http://a b", "http://a:99999", "javascript:x"),
        *("http://[", LONGEST_URL + "x"),
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|longer"):
        names.url(url)


@pytest.mark.slow
@given(
    some.lists(
        some.from_regex(r"2026-0[1-3]-[0-3][0-9][T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](Z|\+01:00|)", fullmatch=True)
    )
)
def test_a_time_means_the_same_whether_its_hour_was_read_or_not(cells: list[str]) -> None:
    fitted = times.fit(Sample([(2, "2026-01-31T12:00:07Z")])).parse
    for cell in cells * 2:
        assert said(fitted, cell) == said(times.instant, cell)


def said(parse: Parse, cell: str) -> object:
    try:
        return parse(cell)
    except ValueError as error:
        return str(error)
