"""Recount skips, completion, listeners, hours, milestones and releases from single plays, to check the API."""

import calendar
import statistics
from collections import Counter, defaultdict
from itertools import chain, repeat
from typing import Any, NamedTuple

from musicsvc.clock import DAY, HOUR, isoformat
from musicsvc.store.engine.sql import fetch
from musicsvc.store.insights.figures import ratio
from musicsvc.store.insights.listening import DEFAULT_DAYS, listening, milestones, releases
from musicsvc.store.insights.listening.listening import Hours, Listening
from musicsvc.store.insights.listening.milestones import BestDay, Milestone, Milestones
from musicsvc.store.insights.listening.releases import Release, ReleasePoint
from musicsvc.store.plays.periods import SLOT, SLOTS_PER_DAY, Window, to_date
from musicsvc.store.plays.rollups import histograms
from musicsvc.store.plays.subjects import ALBUM, OF_TRACKS, Subject

PLAYS = """
    FROM (
        SELECT p.*, COALESCE(t.duration, d.duration) AS length FROM play p LEFT JOIN track t ON t.id = p.track_id
        LEFT JOIN deleted_track d ON d.kind = 1 AND d.subject = p.track_id
    ) AS p WHERE p.{tracks}
"""
WITHIN = f"{PLAYS} AND p.slot >= ? AND p.slot < ? AND p.played_at >= ? AND p.played_at < ?"
COUNTED = f"""
    SELECT COUNT(*), COUNT(DISTINCT p.listener_id), COALESCE(SUM(CASE WHEN p.duration_ms IS NULL THEN 1 ELSE 0 END), 0),
        COALESCE(SUM(CASE WHEN p.duration_ms IS NOT NULL AND p.length = 0 THEN 1 ELSE 0 END), 0) {WITHIN}
"""
MEASURED = f"""
    SELECT CASE WHEN p.duration_ms >= p.length THEN 100 ELSE p.duration_ms * 100 / p.length END,
        CASE WHEN p.duration_ms < {histograms.SKIP_BEFORE_MS} AND p.duration_ms * 2 < p.length THEN 1 ELSE 0 END,
        COUNT(*)
    {WITHIN} AND p.duration_ms IS NOT NULL AND p.length > 0 GROUP BY 1, 2
"""
FIRST_PLAYED = f"""
    SELECT COUNT(*) FROM (
        SELECT p.listener_id {PLAYS} GROUP BY p.listener_id HAVING MIN(p.played_at) >= ? AND MIN(p.played_at) < ?
    ) AS firsts
"""  # noqa: S608 - constants
BY_HOUR = f"SELECT p.played_at / {HOUR}, COUNT(*) {WITHIN} GROUP BY 1"
NUMBERED = f"SELECT p.played_at {PLAYS} ORDER BY p.played_at LIMIT 1 OFFSET ?"
BEST_DAY = f"SELECT p.played_at / {DAY}, COUNT(*) {PLAYS} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
BY_DAY = f"SELECT p.played_at / {DAY}, p.listener_id {WITHIN}"


class Recount(NamedTuple):
    """Figures of a track, album or artist. `release`: daily figures since an album's release, otherwise None."""

    listening: Listening
    hours: Hours
    milestones: Milestones
    release: Release | None


class Recounted(NamedTuple):
    """Recounted figures, figures of the API (`served`), and numbers of plays without duration or track length."""

    counted: Recount
    served: Recount
    without_duration: int
    without_length: int

    def differences(self, kept_from: int) -> list[tuple[str, Any, Any]]:
        """Return (name, API value, recounted value) of each figure that differs.

        Figures that depend on plays before the day `kept_from`, which were deleted, are skipped.
        """
        pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
        if kept_from <= self.served.listening.window.first:
            pairs.append((_in_window(self.served), _in_window(self.counted)))
        if kept_from == 0:
            pairs.append((_of_all_time(self.served), _of_all_time(self.counted)))
        return [
            (name, served.get(name), counted.get(name))
            for served, counted in pairs
            for name in served | counted
            if served.get(name) != counted.get(name)
        ]


def _in_window(found: Recount) -> dict[str, Any]:
    """Return those figures that depend only on the plays in the window, by name."""
    return _listening(found, all_time=False) | {
        f"plays on {calendar.day_name[day]}s at {hour:02}:00": plays
        for day, row in enumerate(found.hours.plays)
        for hour, plays in enumerate(row)
    }


def _of_all_time(found: Recount) -> dict[str, Any]:
    """Return those figures that also depend on plays outside the window, by name."""
    best = found.milestones.best_day
    return _listening(found, all_time=True) | {
        "best day": best and f"{to_date(best.day)}, {best.plays} plays",
        **{f"play {each.number:,}": isoformat(each.at) for each in found.milestones.plays},
        **{
            f"{name} on day {point.day} since the release": getattr(point, name)
            for point in (found.release.points if found.release else ())
            for name in ("plays", "listeners")
        },
    }


def _listening(found: Recount, *, all_time: bool) -> dict[str, Any]:
    """Return figures of listening by title, such as `new listeners`."""
    figures = (each for each in listening.LISTENING if each.all_time == all_time)
    return {each.title.lower(): getattr(found.listening, each.key) for each in figures}


def build(subject: Subject, window: Window, now: int) -> Recounted:
    """Recount figures of a track, album or artist from the stored single plays. May be slow."""
    found = _Plays(subject)
    ((plays, people, without_duration, without_length),) = found.within(COUNTED, window)
    released = releases.build([subject.id], DEFAULT_DAYS, now)[0] if subject.kind == ALBUM else None
    hours = Counter[int]()
    for hour, count in found.within(BY_HOUR, window):
        hours[(hour + histograms.FIRST_HOUR) % histograms.HOURS] += count
    counted = Recount(
        found.listening(window, plays, people),
        Hours(window, listening.by_day([hours[hour] for hour in range(histograms.HOURS)])),
        found.milestones(),
        released and found.release(released),
    )
    served = Recount(*listening.build(subject, window), milestones.build(subject), released)
    return Recounted(counted, served, without_duration, without_length)


class _Plays:
    """The single plays of a track, album or artist."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def _fetch(self, statement: str, *values: int) -> list[Any]:
        return fetch(statement.format(tracks=OF_TRACKS[self._subject.kind]), self._subject.id, *values)

    def within(self, statement: str, window: Window) -> list[Any]:
        slots = window.first * SLOTS_PER_DAY, -(-window.ends // SLOT)
        return self._fetch(statement, *slots, window.starts, window.ends)

    def listening(self, window: Window, plays: int, people: int) -> Listening:
        rows = self.within(MEASURED, window)
        percent = list(chain.from_iterable(repeat(int(share), count) for share, _, count in rows))
        ((new,),) = self._fetch(FIRST_PLAYED, window.starts, window.ends)
        return Listening(
            window=window,
            plays_with_duration=len(percent),
            skips=sum(count for _, skipped, count in rows if skipped),
            mean=ratio(sum(percent), len(percent), 1) if percent else None,
            median=float(statistics.median(percent)) if percent else None,
            plays_per_listener=listening.per_listener(plays, people),
            new_listeners=new,
            returning_listeners=people - new,
        )

    def milestones(self) -> Milestones:
        found = []
        number = milestones.FIRST
        while rows := self._fetch(NUMBERED, number - 1):
            found.append(Milestone(number, rows[0][0]))
            number *= milestones.FACTOR
        best = [BestDay(day, plays) for day, plays in self._fetch(BEST_DAY)]
        return Milestones(found, best[0] if best else None)

    def release(self, served: Release) -> Release:
        """Recount the plays and listeners of the album since its release, for the same days as `served`."""
        if not served.points:
            return served
        window = releases.window(served)
        listeners: dict[int, list[int]] = defaultdict(list)
        for day, listener in self.within(BY_DAY, window):
            listeners[day - window.first].append(listener)
        heard = set[int]()
        points = []
        for day in range(window.days):
            heard.update(listeners[day])
            points.append(ReleasePoint(day, len(listeners[day]), len(heard)))
        return served._replace(points=points)
