"""Build the content of exports (docs/exports.md) for the API and the command line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from musicsvc.clock import isoformat
from musicsvc.reports.formats import FORMATS, Format
from musicsvc.reports.tables import Table
from musicsvc.reports.verification import Checksum
from musicsvc.server.shapes import columns, insights, listening
from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.verification import verification
from musicsvc.store.engine.name_keys import folded_key
from musicsvc.store.insights import scopes
from musicsvc.store.insights.export_rows import KINDS
from musicsvc.store.insights.figures import FIGURES, FIRST_PLAY, Figure, noun
from musicsvc.store.insights.listening import first_plays
from musicsvc.store.insights.listening.listening import LISTENING
from musicsvc.store.insights.overview import Details, Overview, TopRow
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.plays.periods import Window, to_date

LONGEST_SLUG = 60


def formats() -> list[JSON]:
    return [
        {"id": each.id, "name": each.name, "description": each.description} for each in FORMATS.values() if each.listed
    ]


def table(type_: str, scope: Scope, window: Window, now: int, rows: Iterable[Sequence[object]], form: Format) -> Table:
    """Return the table of an export in the file format `form`. `rows`: a sequence of cells for each row."""
    checksum, of_rows = Checksum(), columns.of_type(type_, scope)
    describe = partial(verification, type_, scope, window, now, checksum)
    watched = checksum.watch([each.name for each in of_rows], rows)
    if form.for_people and type_ in KINDS:
        watched = _for_people(watched, window, [each.name for each in of_rows])
    return Table(of_rows, watched, head(type_, window, now), describe)


def _for_people(rows: Iterable[Sequence[Any]], window: Window, names: list[str]) -> Iterator[Sequence[object]]:
    """Yield the rows with the first plays in place of growth, where these are recent."""
    place, growth = names.index(FIRST_PLAY.name), [names.index(each.name) for each in FIGURES if each.unit == "%"]
    for row in rows:
        text = insights.first_plays(window, row[place])
        yield [text if text and at in growth else cell for at, cell in enumerate(row)]


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
    return re.sub("[^a-z0-9]+", "-", folded_key(name))[:LONGEST_SLUG].strip("-")


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
    return whole | {
        name: [
            insights.ranked(row.ranked) | {"plays_change": row.plays_change, FIRST_PLAY.name: _date(row.first_day)}
            for row in rows
        ]
        for name, rows in _tops(found).items()
    }


def _tops(found: Overview) -> dict[str, list[TopRow]]:
    return {"top_tracks": found.top, "top_albums": found.top_albums, "top_artists": found.top_artists}


def for_workbook(data: JSON, found: Overview) -> JSON:
    """Return the figures of a report file with what only workbooks have: ISRCs, UPCs, labels, and text for growth."""
    window, whole, further = found.figures.window, data["summary"], columns.OF_REPORT.of_tops
    tops = {
        name: [
            shaped
            | dict(zip((each.name for each in further[name]), row.codes, strict=False))
            | {"plays_change": insights.first_plays(window, _date(row.first_day)) or row.plays_change}
            for shaped, row in zip(data[name], rows, strict=True)
        ]
        for name, rows in _tops(found).items()
    }
    if text := insights.first_plays(window, found.figures.first_play):
        changes = {each.path.removeprefix("growth."): text for each in FIGURES if each.unit == "%"}
        whole |= {"growth": whole["growth"] | changes}
    return data | {"summary": whole} | tops


def printed(found: Overview, now: int) -> JSON:
    """Return the figures of a report file, with what only its pages show, as input of the PDF."""
    data, window = report_file(found, now, "pdf"), found.figures.window
    for name, rows in _tops(found).items():
        for shaped, row in zip(data[name], rows, strict=True):
            first = _instead_of_growth(window, row.first_day)
            shaped |= {"artists": row.artists, "code": _code(name, row), "first_plays": first}
    compared = [] if found.details is None else found.details.releases
    return data | {
        "name": found.name,
        "releases": listening.releases_until(now, compared, data["releases"]["days"]),
        "cards": _cards(FIGURES, data["summary"]),
        "all_time": {each.title: f"{getattr(found.figures, each.key):,}" for each in FIGURES if each.all_time},
        "listening_cards": _cards(LISTENING, data["listening"]),
        "before": _before(found),
        "unfinished": now < window.ends,
        "last_played": _date(found.last_played),
        "first_plays": _instead_of_growth(window, found.figures.first_day),
    }


def _code(name: str, row: TopRow) -> str | None:
    """Return the ISRC of a track or the UPC of an album as text, such as `ISRC USRC17607839`, or None."""
    column, code = next(zip(columns.OF_REPORT.of_tops[name], row.codes, strict=False), (None, None))
    return column and code and f"{column.heading} {code}"


def _cards(rows: Iterable[Figure], data: JSON) -> list[JSON]:
    return [
        {
            "title": each.figure.title,
            "value": each.value,
            "note": each.note_text,
            "grows": bool(each.figure.growth),
            "change": each.growth,
        }
        for each in insights.cards(rows, data)
    ]


def _before(found: Overview) -> JSON | None:
    """Return the days of the preceding window, or None if there is nothing to compare with.

    `partial`: only a part of the last day counts, up to the time of day at which the report was made.
    """
    if not found.before:
        return None
    plays, listeners = zip(*found.before, strict=True)
    before = found.figures.window.before
    return {"label": before.label, "plays": plays, "listeners": listeners, "partial": before.seconds > 0}


def _instead_of_growth(window: Window, first_day: int | None) -> str | None:
    return _date(first_plays.instead_of_growth(window, first_day))


def _date(day: int | None) -> str | None:
    return None if day is None else to_date(day).isoformat()
