"""Periods as text, and the labels of time axes."""

from datetime import date, timedelta
from itertools import pairwise

import pytest

from musicsvc.reports.charts import dates, graphs


@pytest.mark.parametrize(
    ("first", "last", "name"),
    [
        (date(2026, 2, 1), date(2026, 2, 28), "February 2026"),
        (date(2024, 2, 1), date(2024, 2, 28), None),
        (date(2026, 12, 1), date(2026, 12, 31), "December 2026"),
        (date(2026, 7, 1), date(2026, 9, 30), "Q3 2026"),
        (date(2026, 10, 1), date(2026, 12, 31), "Q4 2026"),
        (date(2026, 8, 1), date(2026, 10, 31), None),
        (date(2025, 1, 1), date(2025, 12, 31), "2025"),
        (date(2025, 2, 1), date(2026, 1, 31), None),
        (date(2025, 1, 1), date(2026, 12, 31), None),
        (date(2026, 3, 2), date(2026, 4, 1), None),
    ],
)
def test_a_month_a_quarter_and_a_year_have_names(first: date, last: date, name: str | None) -> None:
    assert dates.calendar_name(first, last) == name


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (date(2026, 3, 1), date(2026, 3, 1), "1 Mar 2026"),
        (date(2026, 3, 1), date(2026, 3, 9), "1 – 9 Mar 2026"),
        (date(2026, 1, 31), date(2026, 3, 1), "31 Jan – 1 Mar 2026"),
        (date(2025, 3, 1), date(2026, 3, 9), "1 Mar 2025 – 9 Mar 2026"),
    ],
)
def test_a_range_of_days_is_written_without_repetition(first: date, last: date, text: str) -> None:
    assert dates.span(first, last) == text


def test_a_range_of_days_in_words_names_one_day_once() -> None:
    assert dates.words(date(2026, 3, 1), date(2026, 3, 9)) == "1 Mar 2026 to 9 Mar 2026"
    assert dates.words(date(2026, 3, 1), date(2026, 3, 1)) == "1 Mar 2026"


@pytest.mark.parametrize(
    ("days", "texts"),
    [
        (1, ["25 Oct"]),
        (7, ["25 Oct", "26 Oct", "27 Oct", "28 Oct", "29 Oct", "30 Oct", "31 Oct"]),
        (14, ["25 Oct", "27 Oct", "29 Oct", "31 Oct", "2 Nov", "4 Nov", "6 Nov"]),
        (30, ["25 Oct", "30 Oct", "4 Nov", "9 Nov", "14 Nov", "19 Nov"]),
        (50, ["25 Oct", "1 Nov", "8 Nov", "15 Nov", "22 Nov", "29 Nov", "6 Dec", "13 Dec"]),
        (68, ["25 Oct", "4 Nov", "14 Nov", "24 Nov", "4 Dec", "14 Dec", "24 Dec"]),  # its last day is 31 December
        (69, ["25 Oct 2025", "4 Nov 2025", "14 Nov 2025", "24 Nov 2025", "4 Dec 2025", "14 Dec 2025", "24 Dec 2025"]),
        (85, ["25 Oct 2025", "9 Nov 2025", "24 Nov 2025", "9 Dec 2025", "24 Dec 2025", "8 Jan 2026"]),
        (101, ["Nov 2025", "Dec 2025", "Jan 2026", "Feb 2026"]),
        (365, ["Nov 2025", "Jan 2026", "Mar 2026", "May 2026", "Jul 2026", "Sep 2026"]),
        (700, ["Jan 2026", "Apr 2026", "Jul 2026", "Oct 2026", "Jan 2027", "Apr 2027", "Jul 2027"]),
        (1200, ["Jan 2026", "Jul 2026", "Jan 2027", "Jul 2027", "Jan 2028", "Jul 2028", "Jan 2029"]),
        (2600, ["2026", "2027", "2028", "2029", "2030", "2031", "2032"]),
        (3650, ["2026", "2028", "2030", "2032", "2034"]),
        (7300, ["2030", "2035", "2040", "2045"]),
        (18_250, ["2030", "2040", "2050", "2060", "2070"]),
        (36_600, ["2040", "2060", "2080", "2100", "2120"]),
    ],
)
def test_labels_are_evenly_spaced_and_have_years_on_long_axes(days: int, texts: list[str]) -> None:
    labels = graphs.labels(date(2025, 10, 25), days, max(1, days - 1))
    assert [label["label"] for label in labels] == texts


def test_a_day_of_an_axis_of_months_has_its_year() -> None:
    first = date(2026, 1, 20)
    assert graphs.day_label(first, 99, graphs.LONGEST_IN_DAYS) == "29 Apr"
    assert graphs.day_label(first, 99, graphs.LONGEST_IN_DAYS + 1) == "29 Apr 2026"


def test_every_axis_has_some_labels_at_even_distances() -> None:
    for days in range(2, 1500, 7):
        places = [label["at"] * (days - 1) for label in graphs.labels(date(2026, 1, 1), days, days - 1)]
        gaps = [after - before for before, after in pairwise(places)]
        assert 1 < len(places) <= graphs.MOST_LABELS
        assert max(gaps) - min(gaps) <= 4  # months differ in length
        assert max(places) <= days - 1


def test_a_label_is_at_its_day() -> None:
    first = date(2026, 1, 20)
    for label in graphs.labels(first, 200, 250):
        day = first + timedelta(days=round(label["at"] * 250))
        assert (day.day, f"{day:%b %Y}") == (1, label["label"])
