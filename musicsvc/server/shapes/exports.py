"""Build the content of exports (docs/exports.md) for the API and the command line."""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial

from musicsvc.clock import isoformat, to_datetime
from musicsvc.reports.formats import FORMATS, Format
from musicsvc.reports.report import (
    Comparison,
    Report,
    ReportDay,
    ReportFigure,
    ReportMilestones,
    ReportRelease,
    ReportRow,
)
from musicsvc.reports.tables import Table
from musicsvc.reports.verification import Checksum
from musicsvc.server.shapes import insights, listening
from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.verification import verification
from musicsvc.store.engine.names.name_index import fold
from musicsvc.store.insights import scopes
from musicsvc.store.insights.export_rows import COLUMNS, KINDS
from musicsvc.store.insights.figures import FIGURES, Figure, noun
from musicsvc.store.insights.listening import first_plays, releases
from musicsvc.store.insights.listening.listening import LISTENING
from musicsvc.store.insights.listening.releases import Release
from musicsvc.store.insights.overview import Details, Overview, SubjectMilestones, TopRow
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import Window, to_date

FIRST_PLAY = "first_play"  # a column in workbooks: the date of the first play
LONGEST_SLUG = 60


def formats() -> list[JSON]:
    return [
        {"id": each.id, "name": each.name, "description": each.description} for each in FORMATS.values() if each.listed
    ]


def table(type_: str, scope: Scope, window: Window, now: int, rows: Iterable[Sequence[object]], form: Format) -> Table:
    """Return the table of an export in the file format `form`. `rows`: a sequence of cells for each row."""
    checksum, columns = Checksum(), COLUMNS[type_]
    describe = partial(verification, type_, scope, window, now, checksum)
    watched = checksum.watch(columns, rows)
    if form.first_plays and type_ in KINDS:
        columns, watched = (*columns, FIRST_PLAY), first_plays.with_dates(KINDS[type_], watched)
    return Table(columns, watched, head(type_, window, now), describe)


def head(type_: str, window: Window, now: int) -> JSON:
    """Return the keys that precede the rows of a JSON export: type of the rows, period, and time of the export."""
    return {"type": type_, "period": insights.period(window), "generated_at": isoformat(now)} | _unlike(window)


def _unlike(window: Window) -> JSON:
    """Return `growth_basis` as JSON if growth compares a part of a day with a whole day, else an empty object."""
    return {"growth_basis": insights.growth_basis(window)} if window.before.whole_day else {}


def file_name(type_: str, scope: Scope, window: Window, suffix: str) -> str:
    """Return the name of an export file, such as `musicsvc-album-3-classic-rags-tracks-2026-01-02-to-2026-01-31.csv`.

    It names the artist, album or track to which the export is limited, as far as the name has ASCII letters.
    """
    subject = scope.subject and [noun(scope.subject), str(scope.subject.id), _slug(scopes.name(scope) or "")]
    about = "-".join(part for part in ("musicsvc", *(subject or ()), type_) if part)
    return f"{about}-{to_date(window.first)}-to-{to_date(window.end - 1)}.{suffix}"


def _slug(name: str) -> str:
    return re.sub("[^a-z0-9]+", "-", fold(name))[:LONGEST_SLUG].strip("-")


def report(found: Overview, now: int, *, charts: bool) -> JSON:
    """Return a report as JSON. `charts`: whether to include the figures of each day."""
    figures = insights.figures(found.figures)
    period = figures.pop("period")
    counts = {"tracks_count": found.tracks, "albums_count": found.albums, "artists_count": found.artists}
    shaped = {
        "period": period,
        "generated_at": isoformat(now),
        "summary": figures | counts,
        "top_tracks": [insights.ranked(row.ranked) for row in found.top],
    } | _unlike(found.figures.window)
    if charts:
        shaped["charts"] = insights.chart(found.chart)
    return shaped | ({} if found.details is None else _details(found.details))


def _details(found: Details) -> JSON:
    """Return listening figures, hours of the week, milestones and releases of a report as JSON, without the period."""
    heard, hours = listening.listening(found.listening), listening.hours(found.hours)
    del heard["period"], hours["period"]
    named = ({"kind": noun(each.subject), "id": each.subject.id, "name": each.name} for each in found.milestones)
    reached = (listening.milestones(each.milestones) for each in found.milestones)
    return {
        "listening": heard,
        "hours": hours,
        "milestones": [name | plays for name, plays in zip(named, reached, strict=True)],
        "releases": listening.releases(found.releases, found.days),
    }


def report_file(found: Overview, now: int, form: str) -> JSON:
    """Return the figures of a report file. Formats other than `json` also have the most played albums and artists."""
    whole = report(found, now, charts=True)
    if form == "json":
        return whole
    tops = {"top_tracks": found.top, "top_albums": found.top_albums, "top_artists": found.top_artists}
    return whole | {
        name: [insights.ranked(row.ranked) | {"plays_change": row.plays_change} for row in rows]
        for name, rows in tops.items()
    }


def with_first_plays(data: JSON, found: Overview) -> JSON:
    """Return the figures of a report file with the dates of the first plays beside growth, for a workbook."""
    tops = {"top_tracks": found.top, "top_albums": found.top_albums, "top_artists": found.top_artists}
    dated = {
        name: [shaped | _first_play(row.first_day) for shaped, row in zip(data[name], rows, strict=True)]
        for name, rows in tops.items()
    }
    return data | {"summary": data["summary"] | _first_play(found.first_day)} | dated


def _first_play(day: int | None) -> JSON:
    first = _date(day)
    return {FIRST_PLAY: first and first.isoformat()}


def printed(found: Overview, now: int) -> Report:
    figures, window = found.figures, found.figures.window
    return Report(
        name=found.name,
        first=to_date(window.first),
        last=to_date(window.end - 1),
        generated_at=to_datetime(now),
        plays=figures.plays,
        plays_total=figures.plays_total,
        figures=_printed_figures(FIGURES, insights.figures(figures)),
        all_time=[ReportFigure(each.title, f"{getattr(figures, each.key):,}") for each in FIGURES if each.all_time],
        tracks=found.tracks,
        albums=found.albums,
        artists=found.artists,
        days=[ReportDay(*point) for point in found.chart.points],
        top_tracks=_printed(found.top, window),
        top_albums=_printed(found.top_albums, window),
        top_artists=_printed(found.top_artists, window),
        before=_comparison(found),
        unfinished=now < window.ends,
        last_played=_date(found.last_played),
        first_plays=_date(first_plays.instead_of_growth(window, found.first_day)),
        **({} if found.details is None else _printed_details(found.details, now)),
    )


def _printed_details(found: Details, now: int) -> JSON:
    """Return the listening figures, hours of the week, milestones and releases of a printed report, by field name."""
    return {
        "listening": _printed_figures(LISTENING, insights.nested(LISTENING, found.listening)),
        "hours": found.hours.plays,
        "milestones": [_printed_milestones(each) for each in found.milestones],
        "releases": [_printed_release(each, now) for each in found.releases],
        "release_days": found.days,
    }


def _printed_figures(rows: Iterable[Figure], data: JSON) -> list[ReportFigure]:
    return [
        ReportFigure(each.figure.title, each.value, each.note_text, bool(each.figure.growth), each.growth)
        for each in insights.cards(rows, data)
    ]


def _printed_milestones(each: SubjectMilestones) -> ReportMilestones:
    reached = [(number, to_datetime(at).date()) for number, at in each.milestones.plays]
    best = each.milestones.best_day
    return ReportMilestones(noun(each.subject), each.name, reached, best and (to_date(best.day), best.plays))


def _printed_release(each: Release, now: int) -> ReportRelease:
    released = None if each.release_date is None else date.fromisoformat(each.release_date)
    plays, listeners = [point.plays for point in each.points], [point.listeners for point in each.points]
    return ReportRelease(each.name, released, plays, listeners, releases.open_day(each, now) is not None)


def _comparison(found: Overview) -> Comparison | None:
    """Return the days of the preceding window, or None if there is nothing to compare with."""
    before = found.figures.window.before
    if not found.before:
        return None
    plays, listeners = zip(*found.before, strict=True)
    first, last = to_date(before.first), to_date(before.last)
    return Comparison(before.label, first, last, plays, listeners, partial=before.seconds > 0)


def _printed(rows: Sequence[TopRow], window: Window) -> list[ReportRow]:
    return [
        ReportRow(
            name=row.ranked.name,
            artists=row.artists,
            plays=row.ranked.plays,
            plays_total=row.ranked.plays_total,
            listeners=row.ranked.listeners,
            plays_change=row.plays_change,
            first_plays=_date(first_plays.instead_of_growth(window, row.first_day)),
        )
        for row in rows
    ]


def _date(day: int | None) -> date | None:
    return None if day is None else to_date(day)
