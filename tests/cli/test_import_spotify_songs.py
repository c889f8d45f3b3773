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
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Playlist, PlaylistTrack, Track
from tests.cli.conftest import Json

OWNER = "me@example.test"
SONGS = "spotify_songs/spotify_songs.csv.gz"
KINDS = ("tracks", "albums", "artists", "genres")
TABLES = ("artist", "album", "track", "album_artist", "track_artist", "genre", "tag", "track_genre", "track_tag")


@pytest.mark.only_on("sqlite")
@pytest.mark.usefixtures("run")
def test_the_recipes_take_all_of_spotify_songs_and_second_runs_change_nothing(
    store: Store, ask: Json, shared_data: Callable[[str], Path]
) -> None:
    file = shared_data(SONGS)
    first, seconds, megabytes = measured(recipe("catalog", file))
    assert seconds < 90
    assert megabytes < 300
    assert (first["rows"], first["refused"]) == (32_833, [])
    assert [first[kind]["new"] for kind in KINDS] == [28_356, 22_545, 10_693, 6]
    assert first["notes"] == {"month_padded": 1855, "day_padded": 31, "bpm_dropped": 1}
    check_catalog(store, file, lambda: measured(recipe("catalog", file))[0])
    began = time.process_time()
    done = check_playlists(store, ask, file)
    assert time.process_time() - began < 90
    assert done["playlists"]["new"] == 471
    assert (done["entries"]["new"], done["entries"]["repeated"]) == (32_251, 582)
    sizes = [len(tracks) for tracks in kept(store).values()]
    assert (len(sizes), min(sizes), max(sizes)) == (471, 1, 100)


@pytest.mark.only_on("postgres")
def test_the_recipes_take_the_first_rows_of_spotify_songs_and_second_runs_change_nothing(
    store: Store, ask: Json, tmp_path: Path, shared_data: Callable[[str], Path]
) -> None:
    some = first_lines(3_000, tmp_path, shared_data)
    assert ask(*recipe("catalog", some))["refused"] == []
    check_catalog(store, some, lambda: ask(*recipe("catalog", some)))
    assert check_playlists(store, ask, some)["entries"]["new"] == 2_999


def check_catalog(store: Store, file: Path, again: Callable[[], Any]) -> None:
    """Check that the catalog of the file is there, and that a second run changes nothing."""
    before = rows(store)
    assert dict(zip(TABLES, map(len, before), strict=True)) == counted(file)
    done = again()
    assert all(done[kind]["new"] == done[kind]["changed"] == 0 for kind in KINDS)
    assert rows(store) == before


def check_playlists(store: Store, ask: Json, file: Path) -> Any:
    """Import the playlists of the file twice, check both runs, and return the output of the first one."""
    store.write(lambda: users.create(OWNER, now=1).id).result()
    count, wanted = 0, dict[tuple[str, str], dict[str, None]]()
    names: dict[str, str] = {}
    with opened(file) as lines:
        for song in csv.DictReader(lines):
            count += 1
            name = names.setdefault(song["playlist_id"], song["playlist_name"].strip())
            wanted.setdefault((song["playlist_id"], name), {})[song["track_id"]] = None
    done = ask(*recipe("playlists", file))
    assert done["refused"] == []
    found = kept(store)
    assert found == {playlist: list(tracks) for playlist, tracks in wanted.items()}
    again = ask(*recipe("playlists", file))
    for kind in ("playlists", "entries"):
        assert again[kind] == {"new": 0, "changed": 0, "repeated": count, "refused": 0}
    assert kept(store) == found
    return done


def test_with_blank_na_the_nameless_rows_of_spotify_songs_are_refused_and_listed(
    ask: Json, tmp_path: Path, shared_data: Callable[[str], Path]
) -> None:
    command = recipe("catalog", first_lines(9_300, tmp_path, shared_data))
    done, named = ask(*command, "--blank", "NA", "--dry-run"), ask(*command, "--dry-run")
    assert [refused["line"] for refused in done["refused"]] == [8153, 9284, 9285]
    assert (named["refused"], named["artists"]["new"] - done["artists"]["new"]) == ([], 1)


def first_lines(count: int, folder: Path, shared_data: Callable[[str], Path]) -> Path:
    """Write the first lines of spotify_songs to a file."""
    some = folder / "some.csv"
    with opened(shared_data(SONGS)) as lines:
        some.write_text("".join(itertools.islice(lines, count)), "utf-8")
    return some


def opened(file: Path) -> TextIO:
    """Open a file of songs, which may be compressed."""
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8", newline="")
    return file.open(encoding="utf-8", newline="")


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
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(code))
"""


def measured(arguments: list[str]) -> tuple[Any, float, int]:
    """Return the JSON that a command prints, its seconds of CPU time and its peak memory in MB."""
    line = [sys.executable, "-S", "-c", MEASURING, sys.executable, "-m", "musicsvc", *arguments, "--json"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=True)
    seconds, megabytes = done.stderr.split()[-2:]
    return json.loads(done.stdout), float(seconds), int(megabytes)


def rows(store: Store) -> list[Any]:
    return store.read(
        lambda: [
            sorted(map(tuple, current().execute_sql(f"SELECT * FROM {table}").fetchall()), key=str) for table in TABLES
        ]
    ).result()


def counted(file: Path) -> dict[str, int]:
    """Return the number of rows that each table must have, counted from the file directly."""
    with opened(file) as lines:
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
