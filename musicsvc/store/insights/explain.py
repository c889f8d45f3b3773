"""Recount plays and listeners from single plays, to explain and check the figures that the API returns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from musicsvc.clock import DAY
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights import charts, figures
from musicsvc.store.insights.figures import Figures
from musicsvc.store.insights.listening import recount
from musicsvc.store.insights.listening.recount import Recounted
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window, to_date
from musicsvc.store.plays.subjects import ALBUM, ARTIST, OF_TRACKS, TRACK, Subject

KEPT_FROM = "SELECT kept_from FROM play_progress"
TRACKS = {
    TRACK: "SELECT COUNT(*) FROM track WHERE id = ?",
    ALBUM: "SELECT COUNT(*) FROM track WHERE album_id = ?",
    ARTIST: "SELECT COUNT(*) FROM track_artist WHERE artist_id = ?",
}
# `played_at` determines the day; the condition on `slot`, by which the table is ordered, limits the rows read.
PLAYS = "FROM play WHERE {tracks} AND slot >= ? AND slot < ? AND played_at >= ? AND played_at < ?"
COUNTED = f"SELECT COUNT(*), COUNT(DISTINCT listener_id) {PLAYS}"
BY_DAY = f"""
    SELECT played_at / {DAY}, COUNT(*), COUNT(DISTINCT listener_id) {PLAYS} GROUP BY played_at / {DAY} ORDER BY 1
"""
EVER = "SELECT COUNT(*), COUNT(DISTINCT listener_id) FROM play WHERE {tracks}"


class Counted(NamedTuple):
    """The numbers of plays and of distinct listeners."""

    plays: int
    listeners: int


class Difference(NamedTuple):
    figure: str
    served: float | str | None
    counted: float | str | None


class Kept(NamedTuple):
    """Whether all single plays are kept of the window, of the window before and of all time, else they cannot count."""

    within: bool
    before: bool
    ever: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Numbers recounted from single plays, the figures of the API (`served`), and the differences."""

    window: Window
    window_before: Window
    tracks: int
    kept_from: int  # plays before this day were deleted; statistics that include them are not compared
    kept: Kept
    days: dict[int, Counted]  # only days with plays
    within: Counted
    before: Counted
    ever: Counted
    served: Figures
    listening: Recounted
    differences: list[Difference]


def build(subject: Subject, window: Window, now: int) -> Explanation:
    """Recount the plays of the window, of the earlier window and of all time, and compare with the API. May be slow."""
    ((kept_from,),) = fetch(KEPT_FROM)
    ((tracks,),) = fetch(TRACKS[subject.kind], subject.id)
    earlier = window.before.countable(kept_from)
    kept = Kept(
        within=kept_from <= window.first,
        before=window.compared_with is None or kept_from <= earlier.first,
        ever=kept_from == 0,
    )
    within, before = (Counted._make(_count(COUNTED, subject, each)[0]) for each in (window, earlier))
    ever = Counted._make(fetch(EVER.format(tracks=OF_TRACKS[subject.kind]), subject.id)[0])
    days = {day: Counted(*counted) for day, *counted in _count(BY_DAY, subject, window)}
    served = figures.figures(subject, window)
    compared: list[Difference] = []
    if kept.within:
        compared += _of_counts("in the window", Counted(served.plays, served.listeners), within)
        for day, point in enumerate(charts.build(subject, window).points, window.first):
            compared += _of_counts(f"on {to_date(day)}", Counted(*point[:2]), days.get(day, Counted(0, 0)))
    if kept.before:
        plays, listeners = (figures.change(*pair) for pair in zip(within, before, strict=True))
        compared.append(Difference("growth of plays", served.plays_change, plays))
        compared.append(Difference("growth of listeners", served.listeners_change, listeners))
    if kept.ever:
        compared += _of_counts("of all time", Counted(served.plays_total, served.listeners_total), ever)
    differences = [each for each in compared if each.served != each.counted]
    more = recount.build(subject, window, now)
    differences += [Difference(*each) for each in more.differences(kept_from)]
    return Explanation(window, earlier, tracks, kept_from, kept, days, within, before, ever, served, more, differences)


def _count(statement: str, subject: Subject, window: Window) -> list[Any]:
    query = statement.format(tracks=OF_TRACKS[subject.kind])
    slots = window.first * SLOTS_PER_DAY, -(-window.ends // SLOT)
    return fetch(query, subject.id, *slots, window.starts, window.ends)


def _of_counts(days: str, served: Counted, counted: Counted) -> list[Difference]:
    return [
        Difference(f"plays {days}", served.plays, counted.plays),
        Difference(f"listeners {days}", served.listeners, counted.listeners),
    ]
