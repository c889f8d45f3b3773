"""The recipes of docs/import.md on the real data of spotify_songs."""

import csv
import gzip
import itertools
import json
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Playlist, PlaylistTrack, Track
from tests.cli.conftest import Json

OWNER = "me@example.test"
SONGS = "spotify_songs/spotify_songs.csv.gz"
TABLES = ("artist", "album", "track", "album_artist", "track_artist", "genre", "tag", "track_genre", "track_tag")


@pytest.mark.usefixtures("run")
def test_the_recipes_take_all_of_spotify_songs_and_second_runs_change_nothing(
    store: Store, ask: Json, shared_data: Callable[[str], Path]
) -> None:
    file = shared_data(SONGS)
    check_catalog(store, file)
    store.write(lambda: users.create(OWNER, now=1).id).result()
    check_playlists(store, ask, file)


def check_catalog(store: Store, file: Path) -> None:
    command = recipe("catalog", file)
    first, seconds, megabytes = measured(command)
    assert seconds < 180
    assert megabytes < 300
    assert (first["rows"], first["refused"]) == (32_833, [])
    assert [first[kind]["new"] for kind in ("tracks", "albums", "artists", "genres")] == [28_356, 22_545, 10_693, 6]
    assert first["notes"] == {"month_padded": 1855, "day_padded": 31, "bpm_dropped": 1}
    before = rows(store)
    assert dict(zip(TABLES, map(len, before), strict=True)) == counted(command[2])
    again, _, _ = measured(command)
    assert all(again[kind]["new"] == again[kind]["changed"] == 0 for kind in ("tracks", "albums", "artists", "genres"))
    assert rows(store) == before


def check_playlists(store: Store, ask: Json, file: Path) -> None:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = Counter[str]()
        wanted: dict[tuple[str, str], dict[str, None]] = {}
        names: dict[str, str] = {}
        for song in csv.DictReader(lines):
            rows[song["playlist_id"]] += 1
            name = names.setdefault(song["playlist_id"], song["playlist_name"].strip())
            wanted.setdefault((song["playlist_id"], name), {})[song["track_id"]] = None
    began = time.monotonic()
    done = ask(*recipe("playlists", file))
    assert time.monotonic() - began < 120
    assert (done["refused"], done["playlists"]["new"]) == ([], 471)
    assert (done["entries"]["new"], done["entries"]["repeated"]) == (32_251, 582)
    found = kept(store)
    assert found == {playlist: list(tracks) for playlist, tracks in wanted.items()}
    sizes = [len(tracks) for tracks in found.values()]
    assert (len(sizes), min(sizes), max(sizes), max(rows.values())) == (471, 1, 100, 247)
    again = ask(*recipe("playlists", file))
    assert again["playlists"] == {"new": 0, "changed": 0, "repeated": 32_833, "refused": 0}
    assert again["entries"] == {"new": 0, "changed": 0, "repeated": 32_833, "refused": 0}
    assert kept(store) == found


def test_with_blank_na_the_nameless_rows_of_spotify_songs_are_refused_and_listed(
    ask: Json, tmp_path: Path, shared_data: Callable[[str], Path]
) -> None:
    some = tmp_path / "some.csv"
    with gzip.open(shared_data(SONGS), "rt", encoding="utf-8") as lines:
        some.write_text("".join(itertools.islice(lines, 9_300)), "utf-8")
    command = recipe("catalog", some)
    done, named = ask(*command, "--blank", "NA", "--dry-run"), ask(*command, "--dry-run")
    assert [refused["line"] for refused in done["refused"]] == [8153, 9284, 9285]
    assert (named["refused"], named["artists"]["new"] - done["artists"]["new"]) == ([], 1)


def recipe(command: str, file: Path) -> list[str]:
    """The command of docs/import.md for spotify_songs, with this file."""
    document = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text("utf-8")
    (block,) = re.findall(rf"```sh\n(musicsvc import {command} spotify_songs.*?)```", document, re.DOTALL)
    return [
        str(file) if part == "spotify_songs.csv.gz" else part for part in shlex.split(block.replace("\\\n", " "))[1:]
    ]


# A process counts the memory of the one that it was forked from as its own, hence a small one in between.
MEASURING = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, code, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss // 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(code))
"""


def measured(arguments: list[str]) -> tuple[Any, float, int]:
    """Return the JSON that a command prints, its seconds and its peak memory in MB."""
    began = time.monotonic()
    line = [sys.executable, "-S", "-c", MEASURING, sys.executable, "-m", "musicsvc", *arguments, "--json"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=True)
    return json.loads(done.stdout), time.monotonic() - began, int(done.stderr.split()[-1])


def rows(store: Store) -> list[Any]:
    return store.read(
        lambda: [
            sorted(map(tuple, current().execute_sql(f"SELECT * FROM {table}").fetchall()), key=str) for table in TABLES
        ]
    ).result()


def counted(file: str) -> dict[str, int]:
    """Return the number of rows that each table must have, counted from the file directly."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        songs = list(csv.DictReader(lines))

    def pairs(owner: str, column: str) -> int:
        return len({(song[owner], part) for song in songs for part in song[column].split(";")})

    return {
        "artist": len({name for song in songs for name in song["track_artist"].split(";")}),
        "album": len({song["track_album_id"] for song in songs}),
        "track": len({song["track_id"] for song in songs}),
        "album_artist": pairs("track_album_id", "track_artist"),
        "track_artist": pairs("track_id", "track_artist"),
        "genre": len({song["playlist_genre"] for song in songs}),
        "tag": len({song["playlist_subgenre"] for song in songs}),
        "track_genre": pairs("track_id", "playlist_genre"),
        "track_tag": pairs("track_id", "playlist_subgenre"),
    }


def kept(store: Store) -> dict[tuple[str, str], list[str]]:
    """Return the external ids of the tracks of each playlist, in order, by its external id and name."""

    def read() -> dict[tuple[str, str], list[str]]:
        columns = (Playlist.external_id, Playlist.name, Track.external_id)
        query = PlaylistTrack.select(*columns).join(Playlist).switch(PlaylistTrack).join(Track)
        found: dict[tuple[str, str], list[str]] = {}
        for external_id, name, track in query.order_by(PlaylistTrack.id).tuples().iterator():
            found.setdefault((external_id, name), []).append(track)
        return found

    return store.read(read).result()
