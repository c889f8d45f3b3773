"""The files of a label: a catalog with ISRCs, two months of plays, and what they must add up to."""

import csv
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.oracle import Past, PlayOf, at

Rows = list[dict[str, Any]]
FIRST = datetime(2024, 9, 1, tzinfo=UTC)
MINUTES = 61 * 24 * 60  # of September and October
TRACKS = 9
ARTISTS = ("Ann", "Bea", "Ann;Cleo")
LABELS = ("036000291452", "4006381333931")


def isrc(track: int) -> str:
    return f"GB-LBL-24-{track:05}"


def catalog() -> Rows:
    """Return 9 tracks of three artists on two albums, some of them duets, one of unknown length."""
    return [
        {
            "isrc": isrc(number),
            "track": f"Song {number}",
            "artist": ARTISTS[number % 3],
            "album": f"Album {number % 2}",
            "album_artist": "Ann",
            "release_date": ("2024-09-06", "2024-09-13")[number % 2],
            "upc": LABELS[number % 2],
            "label": "Blue",
            "track_number": 1 + number // 2,
            "duration_ms": 100_000 + number * 7_000 if number != 4 else "",
            "genre": "jazz",
        }
        for number in range(TRACKS)
    ]


def plays(count: int) -> Rows:
    """Return plays of two months, more in the second. No two are in the same half minute."""
    chance = random.Random(13)
    minutes = sorted(
        chance.sample(range(MINUTES), count // 2) + chance.sample(range(MINUTES // 2, MINUTES), count // 2)
    )
    return [
        {
            "isrc": isrc(min(chance.randrange(TRACKS), chance.randrange(TRACKS))),
            "played_at": (FIRST + timedelta(minutes=minute, seconds=30 * (minute == before))).isoformat(),
            "listener": f"listener {int(chance.triangular(0, 200, minute / MINUTES * 200))}",
            "duration_ms": chance.choice(("", chance.randrange(150_000))),
        }
        for before, minute in zip([-1, *minutes], minutes, strict=False)
    ]


def plays_of_others(count: int) -> Rows:
    """Return plays by name, of two songs of the catalog and of one that it does not have."""
    return [
        {
            "artist": "Ann",
            "track": ("Song 0", "Song 3", "Elsewhere")[number % 3],
            "played_at": (FIRST + timedelta(minutes=211 * number, seconds=7)).isoformat(),
            "listener": f"stranger {number % 90}",
        }
        for number in range(count)
    ]


def write(file: Path, rows: Rows) -> str:
    """Write a CSV file and return its path."""
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, rows[0])
        table.writeheader()
        table.writerows(rows)
    return str(file)


def past(catalog: Rows, played: Rows) -> Past:
    """Return the world of an empty database into which these rows were imported."""
    world = Past()
    albums, artists = list(dict.fromkeys(row["album"] for row in catalog)), []
    for number, row in enumerate(catalog, 1):
        names = row["artist"].split(";")
        artists += [name for name in names if name not in artists]
        album = albums.index(row["album"]) + 1
        world.names[number], world.album_names[album] = row["track"], row["album"]
        world.on_album.setdefault(album, []).append(number)
        for name in names:
            artist = artists.index(name) + 1
            world.artist_names[artist] = name
            world.by_artist.setdefault(artist, []).append(number)
            on = world.albums_by_artist.setdefault(artist, [])
            on += [album] if album not in on else []
    numbers = {row["isrc"]: number for number, row in enumerate(catalog, 1)}
    world.plays = [PlayOf(numbers[row["isrc"]], _instant(row["played_at"]), row["listener"]) for row in played]
    world.by_artist[0] = list(world.names)  # everything
    world.albums_by_artist[0] = list(world.album_names)
    return world


def _instant(text: str) -> int:
    when = datetime.fromisoformat(text)
    return at(when.date()) + (when.hour * 3600 + when.minute * 60 + when.second) * 1_000_000
