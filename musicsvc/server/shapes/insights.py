"""Build the JSON of the insights endpoints: plays and listeners of tracks, albums and artists (docs/insights.md)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from musicsvc.clock import isoformat
from musicsvc.reports.charts import dates
from musicsvc.reports.report_tables import flat
from musicsvc.server.shapes.envelope import JSON, Members
from musicsvc.store.dashboards.catalog_search import Result
from musicsvc.store.dashboards.comparisons import ComparedSubject
from musicsvc.store.dashboards.trends import Change
from musicsvc.store.insights.charts import Chart
from musicsvc.store.insights.collaborations import Collaborations
from musicsvc.store.insights.figures import IN_DATA, ArtistCounts, Figure, Figures
from musicsvc.store.insights.listening.first_plays import instead_of_growth
from musicsvc.store.insights.rankings import Ranked
from musicsvc.store.insights.realtime import Realtime
from musicsvc.store.plays.periods import TIMEFRAMES, Window, to_date, to_day
from musicsvc.store.plays.subjects import KINDS, NOUNS

TIMEFRAME_OF = {period: timeframe for timeframe, period in TIMEFRAMES.items()}


class Card(NamedTuple):
    """A figure as text. `note`: texts, each with the path of the figure that it is, or with an empty path."""

    figure: Figure
    number: str | None
    growth: float | None
    note: list[tuple[str, str]]

    @property
    def unit(self) -> str:
        return f" {self.figure.unit}" if self.figure.unit and self.number else ""

    @property
    def value(self) -> str | None:
        return self.number and self.number + self.unit

    @property
    def note_text(self) -> str:
        return "".join(text for text, _ in self.note)


def nested(rows: Iterable[Figure], found: object) -> JSON:
    """Return the figures that `rows` describe, which are fields of `found`, as JSON."""
    shaped: JSON = {}
    for each in rows:
        group, _, name = each.path.rpartition(".")
        (shaped.setdefault(group, {}) if group else shaped)[name] = getattr(found, each.key)
    return shaped


def cards(rows: Iterable[Figure], data: JSON) -> list[Card]:
    """Return as text the figures that are shown by themselves. `data`: the figures as JSON, as `nested` returns them.

    A figure that is unknown has no note.
    """
    values = flat(data)
    return [_card(each, values) for each in rows if each.card]


def _card(figure: Figure, values: JSON) -> Card:
    value = values[figure.path]
    parts = re.split(r"{([a-z_.]+)}", "" if value is None else figure.note)  # every second one is a path
    note = [(f"{values[part]:,}", part) if place % 2 else (part, "") for place, part in enumerate(parts) if part]
    return Card(figure, None if value is None else f"{value:,}", values.get(figure.growth), note)


def figures(found: Figures) -> JSON:
    """Return plays, listeners, likes and reposts, the growth, the first play, and the period, as JSON."""
    return nested(IN_DATA, found) | {"period": period(found.window)}


def first_plays(window: Window, first_play: str | None) -> str | None:
    """Return the text that people read in place of growth, or None if they read growth. `first_play`: its date."""
    if first_play is None:
        return None
    first = date.fromisoformat(first_play)
    return None if instead_of_growth(window, to_day(first)) is None else dates.first_plays(first)


def period(window: Window) -> JSON:
    """Return the name, the first day and the last day of a period."""
    return {
        "name": window.name,
        "start": to_date(window.first).isoformat(),
        "end": to_date(window.end - 1).isoformat(),
    }


def growth_basis(window: Window) -> str:
    """Return `whole-day` if the part of today so far is compared with a whole day, otherwise `like-for-like`.

    It is `whole-day` if the single plays of the earlier day were deleted, so that only its total is known.
    """
    return "whole-day" if window.before.whole_day else "like-for-like"


def album(found: Figures, tracks: list[Ranked]) -> JSON:
    return figures(found) | {"tracks": [ranked(row) for row in tracks]}


def artist(found: Figures, counts: ArtistCounts, tracks: list[Ranked], albums: list[Ranked]) -> JSON:
    """Return an artist's figures with its most played tracks and albums."""
    return figures(found) | {
        "followers": counts.followers,
        "top_tracks": [ranked(row) for row in tracks],
        "top_albums": [ranked(row) for row in albums],
        "tracks_count": counts.tracks,
        "albums_count": counts.albums,
    }


def ranked(row: Ranked) -> JSON:
    """Return a row of a most-played list: the id, name, plays and listeners of a track or album."""
    own = {} if row.of_artist is None else {"of_artist": row.of_artist._asdict()}
    return {
        "id": row.id,
        "name": row.name,
        "plays": {"total": row.plays_total, "period": row.plays} | own,
        "listeners": {"unique": row.listeners},
    }


def chart(found: Chart) -> JSON:
    """Return a chart with a point for each day, and the totals of all days."""
    first = found.window.first
    return {
        "timeframe": TIMEFRAME_OF.get(found.window.name, found.window.name),
        "interval": "day",
        "points": [{"date": to_date(day).isoformat()} | each._asdict() for day, each in enumerate(found.points, first)],
        "totals": found.totals._asdict(),
    }


def realtime(track_id: int, found: Realtime, now: int) -> JSON:
    return {
        "track_id": track_id,
        "active_listeners": found.active_listeners,
        "plays_last_hour": found.plays_last_hour,
        "recent_plays": [each._asdict() | {"played_at": isoformat(each.played_at)} for each in found.recent],
        "updated_at": isoformat(now),
    }


def collaborations(found: Collaborations, tracks: Sequence[JSON] | Members) -> JSON:
    return {
        "total_collaborations": found.total,
        "top_collaborators": [each._asdict() | {"verified": bool(each.verified)} for each in found.collaborators],
        "collaboration_tracks": tracks,
    }


def found(results: Iterable[Result]) -> JSON:
    """Return the artists, albums and tracks that a search found, in its order."""
    shaped: JSON = {f"{noun}s": [] for noun in reversed(KINDS)}
    for each in results:
        row = {"id": each.subject.id, "name": each.name, "artists": each.artists, "plays_total": each.plays_total}
        shaped[f"{NOUNS[each.subject.kind]}s"].append(row)
    return shaped


def compared(subjects: Sequence[ComparedSubject], window: Window) -> JSON:
    """Return figures of several tracks, albums or artists beside each other, in total and by day."""
    days = zip(window.numbers, zip(*(each.days for each in subjects), strict=True), strict=True)
    return {
        "period": period(window),
        "rows": [
            {
                "id": each.subject.id,
                "name": each.name,
                "plays": each.figures.plays,
                "listeners": each.figures.listeners,
                "plays_change": each.figures.plays_change,
            }
            for each in subjects
        ],
        "points": [
            {"date": to_date(day).isoformat(), "plays": [row[0] for row in rows], "listeners": [row[1] for row in rows]}
            for day, rows in days
        ],
    }


def movers(window: Window, names: Mapping[int, str], up: Iterable[Change], down: Iterable[Change]) -> JSON:
    shaped: JSON = {"period": period(window)}
    for side, changes in (("up", up), ("down", down)):
        shaped[side] = [
            {"id": id_, "name": names[id_], "plays": plays, "before": before, "change": plays - before}
            for id_, plays, before in changes
        ]
    return shaped
