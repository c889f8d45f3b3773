"""Recount figures from the single plays of this database, to explain and check those that the API returns."""

import calendar
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from typing import Any, NamedTuple

from musicsvc.clock import DAY, isoformat
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights import belonging, charts, figures
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.listening import DEFAULT_DAYS, listening, milestones, releases
from musicsvc.store.insights.listening.listening import Hours, Listening
from musicsvc.store.insights.listening.milestones import BestDay, Milestone, Milestones
from musicsvc.store.insights.listening.releases import Release, ReleasePoint
from musicsvc.store.plays import dumping, subjects
from musicsvc.store.plays.periods import SLOTS_PER_DAY, Window, to_date, to_day
from musicsvc.store.plays.rollups import blocks
from musicsvc.store.plays.subjects import ALBUM, OF_TRACKS, TRACK, Subject
from musicsvc.store.recounting import results, statements
from musicsvc.store.recounting.engines import STORED
from musicsvc.store.recounting.results import Recounted
from musicsvc.store.recounting.statements import BY_DAY, CHOSEN, FIGURES, HEARD_FIRST, MILESTONES, Row, Sources

# `played_at` determines the day; the condition on `slot` limits the rows read. With lists of days and tracks, databases
# search the index play_of_day, which takes less time than to read all plays, unless the tracks are many.
PLAYS = """
    SELECT {id} AS subject, track_id, played_at AS instant, duration_ms, listener_id AS listener FROM play
    WHERE {days} AND {tracks} AND played_at >= {starts} AND played_at < {ends}
"""
# Days on which anything was played, by a search for each. Stored counts, which are to be checked, do not say when.
DAYS = f"""
    WITH RECURSIVE found (day) AS (
        SELECT min(slot) / {SLOTS_PER_DAY} FROM play WHERE slot >= ?
        UNION ALL
        SELECT (SELECT min(p.slot) / {SLOTS_PER_DAY} FROM play p WHERE p.slot >= (found.day + 1) * {SLOTS_PER_DAY})
        FROM found WHERE day < ?
    )
    SELECT day FROM found WHERE day <= ?
"""  # noqa: S608 - constants
EVER = Window("", to_day(date.min), to_day(date.max))


class Difference(NamedTuple):
    figure: str
    served: float | str | None
    counted: float | str | None


class Kept(NamedTuple):
    """Whether all single plays are kept of the window, of the window before and of all time, else they cannot count."""

    within: bool
    before: bool
    ever: bool


class Details(NamedTuple):
    """Figures of a track, album or artist. `release`: daily figures since an album's release, otherwise None."""

    listening: Listening
    hours: Hours
    milestones: Milestones
    release: Release | None


class Side(NamedTuple):
    """Everything to compare, as the API returns it or as it was recounted. `days`: (plays, listeners) by day."""

    figures: Figures | Recounted
    days: Mapping[int, tuple[int, int]]
    details: Details


@dataclass(frozen=True, slots=True)
class Explanation:
    """Numbers recounted from single plays, the figures of the API (`served`), and the differences."""

    window: Window
    window_before: Window
    tracks: int
    kept_from: int  # plays before this day were deleted; statistics that include them are not compared
    kept: Kept
    recounted: Recounted
    figures: Figures
    counted: Side
    served: Side
    differences: list[Difference]


def build(subject: Subject, window: Window, now: int) -> Explanation:
    """Recount the plays of the window, of the earlier window and of all time, and compare with the API. May be slow.

    Raises `RuntimeError` if the subject has no name.
    """
    kept_from = blocks.progress().kept_from
    earlier = window.before.countable(kept_from)
    kept = Kept(
        within=kept_from <= window.first,
        before=window.compared_with is None or kept_from <= earlier.first,
        ever=kept_from == 0,
    )
    found = figures.figures(subject, window)
    served = _served(found, subject, window, now)
    window = window._replace(compared_with=window.compared_with and earlier)
    recounted = results.build(subject, window, _rows(subject, window, FIGURES))
    if recounted is None:
        raise RuntimeError("an explained subject has a name")
    released = served.details.release
    more = Details(recounted.listening, recounted.hours, _milestones(subject), released and _release(subject, released))
    counted = Side(recounted, recounted.days, more)
    tracks = belonging.members(subject.id, subject.kind, TRACK).count()
    wrong = differences(served, counted, kept)
    return Explanation(window, earlier, tracks, kept_from, kept, recounted, found, counted, served, wrong)


def differences(served: Side, counted: Side, kept: Kept) -> list[Difference]:
    """Return the figures that differ, of those that depend on no deleted plays."""
    return [
        Difference(name, one.get(name), other.get(name))
        for (days, one), (_, other) in zip(_named(served), _named(counted), strict=True)
        if getattr(kept, days)
        for name in one | other
        if one.get(name) != other.get(name)
    ]


def _named(side: Side) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield figures by name, each group with the field of `Kept` that says whether their plays are kept."""
    found, (heard, hours, reached, release) = side.figures, side.details
    window, best = heard.window, reached.best_day
    days = {f"on {to_date(day)}": side.days.get(day, (0, 0)) for day in window.numbers}
    yield "within", _pairs({"in the window": (found.plays, found.listeners)} | days)
    yield "before", {"growth of plays": found.plays_change, "growth of listeners": found.listeners_change}
    yield "ever", _pairs({"of all time": (found.plays_total, found.listeners_total)}) | {"first play": found.first_play}
    yield (
        "within",
        _listening(heard, all_time=False)
        | {
            f"plays on {calendar.day_name[day]}s at {hour:02}:00": plays
            for day, row in enumerate(hours.plays)
            for hour, plays in enumerate(row)
        },
    )
    points = release.points if release else ()
    yield (
        "ever",
        _listening(heard, all_time=True)
        | {
            "best day": best and f"{to_date(best.day)}, {best.plays} plays",
            **{f"play {each.number:,}": isoformat(each.at) for each in reached.plays},
            **_pairs({f"on day {point.day} since the release": (point.plays, point.listeners) for point in points}),
        },
    )


def _pairs(counted: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """Return plays and listeners by name, given as pairs by the rest of the names."""
    return {
        f"{name} {when}": number
        for when, pair in counted.items()
        for name, number in zip(("plays", "listeners"), pair, strict=True)
    }


def _listening(found: Listening, *, all_time: bool) -> dict[str, Any]:
    """Return figures of listening by title, such as `new listeners`."""
    rows = (each for each in listening.LISTENING if each.all_time == all_time)
    return {each.title.lower(): getattr(found, each.key) for each in rows}


def _served(found: Figures, subject: Subject, window: Window, now: int) -> Side:
    """Return what the API returns."""
    points = enumerate(charts.build(subject, window).points, window.first)
    released = releases.build([subject.id], DEFAULT_DAYS, now)[0] if subject.kind == ALBUM else None
    return Side(
        found,
        {day: (point.plays, point.listeners) for day, point in points},
        Details(*listening.build(subject, window), milestones.build(subject), released),
    )


def _milestones(subject: Subject) -> Milestones:
    """Recount the milestones and the best day of all time."""
    found = results.by_section(_rows(subject, EVER, (BY_DAY, MILESTONES)))
    best = min(found[BY_DAY], key=lambda row: (-row.numbers[1], row.numbers[0]), default=None)
    return Milestones([Milestone(*row.numbers[:2]) for row in found[MILESTONES]], best and BestDay(*best.numbers[:2]))


def _release(subject: Subject, served: Release) -> Release:
    """Recount the plays and listeners of the album since its release, for the same days as `served`."""
    if not served.points:
        return served
    window = releases.window(served)
    found = results.by_section(_rows(subject, window, (BY_DAY, HEARD_FIRST)))
    plays, firsts = ({row.numbers[0]: row.numbers[1] for row in found[each]} for each in (BY_DAY, HEARD_FIRST))
    heard = accumulate(firsts.get(day, 0) for day in window.numbers)
    points = ((plays.get(day, 0), so_far) for day, so_far in zip(window.numbers, heard, strict=True))
    return served._replace(points=[ReleasePoint(number, *point) for number, point in enumerate(points)])


def _rows(subject: Subject, window: Window, sections: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of some sections (of `statements`) about the subject, read from this database."""
    own = [subject.id] if subject.kind == TRACK else subjects.tracks_of(subject.kind, [subject.id])
    few = len(own) <= subjects.MANY
    tracks = f"track_id IN ({_listed(own)})" if few else OF_TRACKS[subject.kind].replace("?", str(subject.id))
    plays, played = (
        PLAYS.format(id=subject.id, tracks=tracks, days=_days(each, few=few), starts=each.starts, ends=each.ends)
        for each in (EVER, window)
    )
    tables = {name: f"({rows})" for name, rows in dumping.TABLES.items()}
    tables["tracks"] = f"({CHOSEN.format(rows=dumping.TABLES['tracks'], condition=tracks)})"
    sources = Sources(f"({plays})", f"({played})", **tables, named=True)
    return results.rows(fetch(statements.build(subject.kind, [subject.id], window, sources, STORED, sections)))


def _days(window: Window, *, few: bool) -> str:
    """Return an SQL condition on the days of the window. Plays of a `few` tracks are searched for on each of them."""
    first, last = window.first, (window.ends - 1) // DAY
    if not few:
        return f"slot >= {first * SLOTS_PER_DAY} AND slot < {(last + 1) * SLOTS_PER_DAY}"
    return f"slot / {SLOTS_PER_DAY} IN ({_listed([day for (day,) in fetch(DAYS, first * SLOTS_PER_DAY, last, last)])})"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers or [-1]))  # PostgreSQL refuses an empty list
