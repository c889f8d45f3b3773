"""Rows of export files, read without the program, and the rows that single plays add up to."""

import csv
import json
from contextlib import closing
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import openpyxl

from tests.support.oracle import AnyPeriod, Past, bounds, day

Rows = list[dict[str, Any]]
TEXTS = {
    *("date", "track", "album", "artist", "artists", "isrc", "upc", "label", "release_date", "first_play"),
    *("album_artists", "external_id", "album_external_id"),
}
HEADINGS = {  # of workbooks
    "Date": "date",
    "Track ID": "track_id",
    "Track": "track",
    "Album ID": "album_id",
    "Album": "album",
    "Artist ID": "artist_id",
    "Artist": "artist",
    "Artists": "artists",
    "Plays of all time": "plays_total",
    "Plays": "plays_period",
    "Plays of the artist": "plays_of_artist_period",
    "Listeners of all time": "listeners_total",
    "Listeners": "listeners_period",
    "Likes": "likes",
    "Reposts": "reposts",
    "Growth of plays": "plays_change",
    "Growth of listeners": "listeners_change",
    "ISRC": "isrc",
    "UPC": "upc",
    "Label": "label",
    "Release date": "release_date",
    "First play": "first_play",
    "Album artists": "album_artists",
    "External ID": "external_id",
    "Album external ID": "album_external_id",
}
OF_DAYS = HEADINGS | {"Plays": "plays", "Listeners": "listeners"}
TABLES = ("csv", "json", "xlsx", "parquet")
TYPES = ("tracks", "albums", "artists", "plays")


def rows(file: Path) -> Rows:
    """Return the rows of an export, with dates as text and null in place of empty cells."""
    return {"csv": _csv, "json": _json, "xlsx": _xlsx, "parquet": _parquet}[file.suffix[1:]](file)


def _csv(file: Path) -> Rows:
    with file.open(encoding="utf-8", newline="") as text:
        return [
            {name: (part or None) if name in TEXTS else json.loads(part or "null") for name, part in row.items()}
            for row in csv.DictReader(text)
        ]


def _json(file: Path) -> Rows:
    found: Rows = json.loads(file.read_bytes())["data"]["rows"]
    return found


def _xlsx(file: Path) -> Rows:
    with closing(openpyxl.load_workbook(BytesIO(file.read_bytes()), read_only=True)) as book:
        return sheet_rows(book.worksheets[0])


def sheet_rows(sheet: Any) -> Rows:
    """Return the rows of a sheet of an export by the names of its columns."""
    header, *lines = sheet.iter_rows(values_only=True)
    names = [(OF_DAYS if header[0] == "Date" else HEADINGS)[heading] for heading in header]
    return [dict(zip(names, map(_plain, line), strict=True)) for line in lines]


def _parquet(file: Path) -> Rows:
    with duckdb.connect() as connection:
        found = connection.read_parquet(str(file))
        return [dict(zip(found.columns, map(_plain, line), strict=True)) for line in found.fetchall()]


def _plain(cell: Any) -> Any:
    if isinstance(cell, datetime):
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, date) else cell


def expected(past: Past, type_: str, period: AnyPeriod, now: int) -> Rows:
    """Return the rows of an export of everything, without the names of artists beside tracks and albums."""
    if type_ == "plays":
        return _days(past, period, now)
    noun = type_.removesuffix("s")
    numbers = {"track": past.names, "album": past.album_names, "artist": past.artist_names}[noun]
    found = []
    for number, name in sorted(numbers.items()):
        of = past.figures(noun, number, period, now)
        found.append(
            {f"{noun}_id": number, noun: name}
            | {f"plays_{part}": of["plays"][part] for part in ("total", "period")}
            | {"listeners_total": of["listeners"]["total"], "listeners_period": of["listeners"]["unique"]}
            | of["engagement"]
            | of["growth"]
        )
    return found


def for_people(row: dict[str, Any], period: AnyPeriod, now: int) -> dict[str, Any]:
    """Return a row as workbooks have it, in which recent first plays stand in place of growth."""
    start, _, earlier, until = bounds(period, now)
    first = row.get("first_play") and date.fromisoformat(row["first_play"])
    if first and (earlier, until) != (start, start) and first > day(earlier):
        return row | dict.fromkeys(("plays_change", "listeners_change"), f"first plays {first:%-d %b %Y}")
    return row


def _days(past: Past, period: AnyPeriod, now: int) -> Rows:
    """Return a row for each day and track with plays."""
    start, end, *_ = bounds(period, now)
    heard: dict[tuple[date, int], list[str]] = {}
    for play in past.plays:
        if start <= play.at < end:
            heard.setdefault((day(play.at), play.track), []).append(play.listener)
    return [
        {
            "date": each.isoformat(),
            "track_id": track,
            "track": past.names[track],
            "plays": len(listeners),
            "listeners": len(set(listeners)),
        }
        for (each, track), listeners in sorted(heard.items())
    ]
