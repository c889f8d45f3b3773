"""A published week of 25 radio stations, with albums and durations made up for its songs, counted with plain Python."""

import csv
import gzip
import io
import zlib
from datetime import date
from pathlib import Path
from typing import Any

from tests.support import oracle
from tests.support.oracle import AnyPeriod, PlayOf

Row = dict[str, Any]
Song = tuple[str, str]  # name and artist
KINDS = ("track", "album", "artist")


def table(file: Path) -> list[dict[str, str]]:
    raw = file.read_bytes()
    return list(csv.DictReader(io.StringIO((gzip.decompress(raw) if file.suffix == ".gz" else raw).decode())))


def with_durations(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the published rows with another column, `heard`: milliseconds, empty in a fifth of them."""
    numbers = (zlib.crc32(row["unique_id"].encode()) for row in rows)
    return [row | {"heard": str(each % 300_000) if each % 5 else ""} for row, each in zip(rows, numbers, strict=True)]


def catalog(rows: list[dict[str, str]]) -> list[Row]:
    """Return a row for each song, with an ISRC, a length (some have none) and one of the artist's two albums."""
    songs = list(dict.fromkeys((row["song"].strip(), row["artist"].strip()) for row in rows))
    return [
        {
            "track": name,
            "artist": artist,
            "isrc": f"XX-RCK-14-{number:05}",
            "album": f"{artist}, {number % 2}",
            "release_date": f"2014-06-{14 + number % 2 * 4}",
            "duration_ms": 60_000 + number * 97 if number % 7 else "",
        }
        for number, (name, artist) in enumerate(songs)
        if name and artist
    ]


class Week:
    """All plays of the week: of each track (a song), album and artist (names), and of everything."""

    def __init__(self, rows: list[dict[str, str]], catalog: list[Row]) -> None:
        albums = {(row["track"], row["artist"]): row["album"] for row in catalog}
        numbers = {song: number for number, song in enumerate(albums)}
        self.lengths = {number: int(row["duration_ms"] or 0) for number, row in enumerate(catalog)}
        self.released = {row["album"]: date.fromisoformat(row["release_date"]) for row in catalog}
        self.everything: list[PlayOf] = []
        self.of: dict[str, dict[Any, list[PlayOf]]] = {
            "track": {song: [] for song in albums},
            "album": {album: [] for album in albums.values()},
            "artist": {artist: [] for _, artist in albums},
        }
        for row in rows:
            song = row["song"].strip(), row["artist"].strip()
            if song not in numbers:
                continue
            duration = int(row["heard"]) if row["heard"] else None
            play = PlayOf(numbers[song], int(row["time"]) * oracle.MICROSECONDS, row["callsign"], duration)
            for kind, name in zip(KINDS, (song, albums[song], song[1]), strict=True):
                self.of[kind][name].append(play)
            self.everything.append(play)

    def exported(self, kind: str, period: AnyPeriod, now: int) -> dict[Any, Row]:
        """Return the figures of every track, album or artist as in exports."""
        return {name: columns(plays, period, now) for name, plays in self.of[kind].items()}

    def by_day(self, period: AnyPeriod, now: int) -> dict[tuple[str, Song], list[int]]:
        """Return the plays and listeners of each day and song."""
        start, end, *_ = oracle.bounds(period, now)
        heard: dict[tuple[str, Song], list[str]] = {}
        for song, plays in self.of["track"].items():
            for play in plays:
                if start <= play.at < end:
                    heard.setdefault((oracle.day(play.at).isoformat(), song), []).append(play.listener)
        return {key: [len(listeners), len(set(listeners))] for key, listeners in heard.items()}


def columns(plays: list[PlayOf], period: AnyPeriod, now: int) -> Row:
    """Return the figures of plays as in exports."""
    start, end, begins, ends = oracle.bounds(period, now)
    within, before = (
        [play for play in plays if one <= play.at < other] for one, other in ((start, end), (begins, ends))
    )
    ever, people, earlier = ({play.listener for play in some} for some in (plays, within, before))
    return {
        "plays_total": len(plays),
        "plays_period": len(within),
        "listeners_total": len(ever),
        "listeners_period": len(people),
        "likes": 0,
        "reposts": 0,
        "plays_change": oracle.growth(len(within), len(before)),
        "listeners_change": oracle.growth(len(people), len(earlier)),
    }
