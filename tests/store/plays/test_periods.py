"""Windows of periods and dates, and the windows that they are compared with."""

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from musicsvc.clock import DAY, SECOND, isoformat, parse
from musicsvc.store.plays import periods
from musicsvc.store.plays.periods import BadDatesError, Window
from tests.support import oracle

# 31 March is the last day of a month that is longer than the one before, and of a quarter.
AT = parse("2026-03-31T10:20:30.700000Z")
# Period, first and last day, and the window before as (begin, end); a time that is missing is midnight.
EXPECTED = [
    ("7-days", "2026-03-25", "2026-03-31", "2026-03-18", "2026-03-24T10:20:30"),
    ("30-days", "2026-03-02", "2026-03-31", "2026-01-31", "2026-03-01T10:20:30"),
    ("90-days", "2026-01-01", "2026-03-31", "2025-10-03", "2025-12-31T10:20:30"),
    ("1-year", "2025-04-01", "2026-03-31", "2024-04-01", "2025-03-31T10:20:30"),
    ("today", "2026-03-31", "2026-03-31", "2026-03-30", "2026-03-30T10:20:30"),
    ("yesterday", "2026-03-30", "2026-03-30", "2026-03-29", "2026-03-30"),
    ("this-month", "2026-03-01", "2026-03-31", "2026-02-01", "2026-03-01"),
    ("2026-03", "2026-03-01", "2026-03-31", "2026-02-01", "2026-03-01"),
    ("last-month", "2026-02-01", "2026-02-28", "2026-01-01", "2026-02-01"),
    ("2026-01", "2026-01-01", "2026-01-31", "2025-12-01", "2026-01-01"),
    ("2026-Q1", "2026-01-01", "2026-03-31", "2025-10-01", "2025-12-29T10:20:30"),
    ("2025-Q4", "2025-10-01", "2025-12-31", "2025-07-01", "2025-10-01"),
    ("2026", "2026-01-01", "2026-03-31", "2025-01-01", "2025-03-31T10:20:30"),
    ("2025", "2025-01-01", "2025-12-31", "2024-01-01", "2025-01-01"),
    ("last-quarter", "2025-10-01", "2025-12-31", "2025-07-01", "2025-10-01"),
    ("last-year", "2025-01-01", "2025-12-31", "2024-01-01", "2025-01-01"),
    # Weeks begin on Monday; 2026-03-31 is a Tuesday.
    ("last-week", "2026-03-23", "2026-03-29", "2026-03-16", "2026-03-23"),
    ("2026-W13", "2026-03-23", "2026-03-29", "2026-03-16", "2026-03-23"),
    ("2026-W14", "2026-03-30", "2026-03-31", "2026-03-23", "2026-03-24T10:20:30"),
    ("2026-W01", "2025-12-29", "2026-01-04", "2025-12-22", "2025-12-29"),  # the year is that of its Thursday
    ("2021-W01", "2021-01-04", "2021-01-10", "2020-12-28", "2021-01-04"),
    ("2020-W53", "2020-12-28", "2021-01-03", "2020-12-21", "2020-12-28"),
]
LABELS = [
    ("7-days", "last 7 days", "previous 7 days"),
    ("today", "today", "previous day"),
    ("last-month", "February 2026", "January 2026"),
    ("this-month", "March 2026", "February 2026"),
    ("2026-Q1", "Q1 2026", "Q4 2025 up to the same time"),
    ("2025", "2025", "2024"),
    ("last-quarter", "Q4 2025", "Q3 2025"),
    ("last-year", "2025", "2024"),
    ("last-week", "week 13 of 2026", "week 12 of 2026"),
    ("2026-W14", "week 14 of 2026", "week 13 of 2026 up to the same time"),
    ("2021-W01", "week 1 of 2021", "week 53 of 2020"),
    ("all", "all time", ""),
]


def test_the_label_of_thousands_of_days_is_separated() -> None:
    assert periods.between(date(2023, 1, 2), date(2026, 3, 1), AT).before.label == "previous 1,155 days"


@pytest.mark.parametrize(("period", "first", "last", "begins", "ends"), EXPECTED)
def test_a_period_has_its_days_and_those_that_it_is_compared_with(
    period: str, first: str, last: str, begins: str, ends: str
) -> None:
    window = periods.window(period, AT)

    assert window.name == period
    assert (isoformat(window.starts)[:10], isoformat(window.ends - 1)[:10]) == (first, last)
    assert (window.before.starts, window.before.ends) == (parse(begins), parse(ends))


@pytest.mark.parametrize(("period", "label", "before"), LABELS)
def test_windows_have_labels_for_people(period: str, label: str, before: str) -> None:
    window = periods.window(period, AT)
    assert (window.label, window.before.label) == (label, before)


def test_all_time_is_compared_with_nothing() -> None:
    window = periods.window("all", AT)
    assert (window.first, window.end) == (0, AT // DAY + 1)
    assert window.before.starts == window.before.ends
    assert window.compared_with is None


@pytest.mark.parametrize(
    "period",
    [
        "",
        "8-days",
        "2026-13",
        "2026-Q5",
        "2026-q1",
        "0000",
        "26",
        "10000",
        " 2026",
        "２０２６",
        "2026-w13",
        "2026W13",
        "2026-W",
        "2026-W013",
        "2026-W１３",
        "0000-W01",
        "last-day",
        "this-week",
        "last-Q3",
    ],
)
def test_a_period_that_does_not_exist_is_refused(period: str) -> None:
    with pytest.raises(ValueError, match=r"is not a period\. Use 7-days, "):
        periods.window(period, AT)


@pytest.mark.parametrize(
    ("period", "latest"),
    [
        ("2026-W54", "2026-W53"),
        ("2025-W53", "2025-W52"),
        ("2026-W00", "2026-W53"),
        ("2026-W5", "2026-W53"),
        ("2020-W99", "2020-W53"),
        ("9999-W53", "9999-W52"),
    ],
)
def test_a_week_that_the_year_does_not_have_is_refused_with_its_weeks(period: str, latest: str) -> None:
    year = period[:4]
    with pytest.raises(
        ValueError, match=f"^'{period}' is not a week. The ISO weeks of {year} are {year}-W01 to {latest}.$"
    ):
        periods.window(period, AT)


@given(some.integers(parse("1970-01-01"), parse("2060-01-01")), some.integers(0, 3000))
def test_every_day_is_in_the_week_of_its_iso_name(now: int, back: int) -> None:
    day = date(1970, 1, 1) + timedelta(days=now // DAY - back)
    year, week, weekday = day.isocalendar()

    window = periods.window(f"{year}-W{week:02}", now)

    assert periods.to_date(window.first) == day - timedelta(days=weekday - 1)
    assert window.last == min(window.first + 6, now // DAY)
    assert (window.before.starts, window.before.seconds) == (window.starts - 7 * DAY, window.before.seconds)
    assert window.before.ends == min(window.starts, now // SECOND * SECOND - 7 * DAY)


@given(some.integers(parse("1971-01-01"), parse("2060-01-01")), some.integers(0, 400))
def test_steps_from_a_week_lead_to_the_weeks_beside_it(now: int, back: int) -> None:
    names = [*periods.recent(periods.WEEK, back + 3, now)]
    after, name, before = [None, *names][back : back + 3]
    assert name is not None

    window = periods.window(name, now)

    found = [periods.neighbour(window, by, now) for by in (1, -1)]
    assert [each and each.name for each in found] == [after, before]


@pytest.mark.parametrize("period", ["2026-04", "2026-Q2", "2027", "9999", "2026-W15", "9999-W52"])
def test_a_period_that_has_not_begun_is_refused(period: str) -> None:
    with pytest.raises(ValueError, match=f"{period} begins after today"):
        periods.window(period, AT)


@given(
    now=some.integers(parse("2019-12-25"), parse("2028-03-05")),
    back=some.one_of(some.sampled_from([0, 0, 0, 1, 27, 28, 29, 30]), some.integers(0, 800)),
    days=some.one_of(some.sampled_from([28, 29, 30, 31, 90, 91, 92, 365, 366]), some.integers(1, 800)),
    start_of_month=some.booleans(),
)
def test_dates_are_compared_as_counted_with_a_calendar(now: int, back: int, days: int, start_of_month: bool) -> None:
    today = date(1970, 1, 1) + timedelta(days=now // DAY)
    last = today - timedelta(days=back)
    first = last - timedelta(days=days - 1)
    first = first.replace(day=1) if start_of_month else first

    window = periods.between(first, last, now)

    found = window.starts, window.ends, window.before.starts, window.before.ends
    assert found == oracle.bounds((first.isoformat(), last.isoformat()), now)
    assert window.before.ends <= window.starts


@given(some.integers(0, 100), some.sampled_from([1, 3, 12]), some.integers(0, 1000 * DAY))
def test_whole_months_quarters_and_years_are_compared_with_the_one_before(number: int, length: int, later: int) -> None:
    first = oracle.months_after(date(1971, 1, 1), number * length)
    last = oracle.months_after(first, length) - timedelta(days=1)

    before = periods.between(first, last, (periods.to_day(last) + 1) * DAY + later).before

    assert periods.to_date(before.first) == oracle.months_after(first, -length)
    assert before.ends == periods.to_day(first) * DAY


def test_a_window_at_the_beginning_of_the_calendar_is_compared_with_nothing() -> None:
    for last in (date(1, 1, 31), date(1, 1, 8), date(1, 12, 31)):
        assert periods.between(date(1, 1, 1), last, AT).compared_with is None
    for name in ("0001-W01", "0001-01", "0001"):
        assert periods.window(name, AT).compared_with is None


@pytest.mark.parametrize(
    ("first", "last", "field"),
    [
        ("2026-03-31", "2026-04-01", "to"),
        ("2026-03-02", "2026-03-01", "from"),
        ("1926-01-15", "2026-03-31", "from"),  # 36,601 days
    ],
)
def test_dates_that_are_no_period_are_refused(first: str, last: str, field: str) -> None:
    with pytest.raises(BadDatesError) as refusal:
        periods.between(date.fromisoformat(first), date.fromisoformat(last), AT)
    assert refusal.value.field == field


def test_a_hundred_years_are_a_period() -> None:
    assert periods.between(date(1926, 1, 16), date(2026, 3, 31), AT).days == 36_600


def test_a_part_of_a_day_without_single_plays_counts_as_a_whole_day() -> None:
    for period, label in (
        ("7-days", "previous 7 days, counted whole"),
        ("2026-Q1", "Q4 2025 up to the same day, counted whole"),
    ):
        before = periods.window(period, AT).before
        counted = before._replace(end=before.end + 1, label=label, seconds=0, whole_day=True)
        assert before.countable(before.end - 1) == before.countable(before.end) == before
        assert before.countable(before.end + 1) == counted
    whole: Any = Window("", 5, 9)
    assert whole.countable(20) == whole
