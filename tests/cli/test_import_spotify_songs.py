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
from typing import Any, NamedTuple, TextIO

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Playlist, PlaylistTrack, Track
from tests.cli.conftest import Json

pytestmark = pytest.mark.slow

OWNER = "me@example.test"
SONGS = "spotify_songs/spotify_songs.csv.gz"
KINDS = ("tracks", "albums", "artists", "genres")
TABLES = ("artist", "album", "track", "album_artist", "track_artist", "genre", "tag", "track_genre", "track_tag")


class Counts(NamedTuple):
    """Numbers that the recipes must print for a file."""

    rows: int
    new: list[int]
    notes: dict[str, int]
    entries: int
    twice: int
    playlists: int
    shortest: int
    longest: int


WHOLE = Counts(
    rows=32_833,
    new=[28_356, 22_545, 10_693, 6],
    notes={"month_padded": 1855, "day_padded": 31},
    entries=32_251,
    twice=582,
    playlists=471,
    shortest=1,
    longest=100,
)
# Every twelfth playlist: all genres and notes, tracks that are in a playlist twice, and a playlist in two pieces.
PART = Counts(
    rows=2_815,
    new=[2_630, 2_105, 1_392, 6],
    notes={"month_padded": 180, "day_padded": 2},
    entries=2_668,
    twice=147,
    playlists=39,
    shortest=9,
    longest=100,
)


@pytest.mark.usefixtures("run")
def test_the_recipes_take_spotify_songs_and_second_runs_change_nothing(
    store: Store, ask: Json, tmp_path: Path, shared_data: Callable[[str], Path], long: bool
) -> None:
    file, counts = (shared_data(SONGS), WHOLE) if long else (every_twelfth_playlist(tmp_path, shared_data), PART)
    first, seconds, megabytes = measured(recipe("catalog", file))
    assert seconds < 90
    assert megabytes < 300
    assert (first["rows"], first["refused"]) == (counts.rows, [])
    assert [first[kind]["new"] for kind in KINDS] == counts.new
    assert first["notes"] == counts.notes | {"playlists_ignored": counts.rows}
    assert [(each["field"], each["count"], each["example"]) for each in first["left_out"]] == [("bpm", 1, "0")]
    check_catalog(store, file, lambda: ask(*recipe("catalog", file)))
    began = time.process_time()
    done = check_playlists(store, ask, file)
    assert time.process_time() - began < 90
    assert done["playlists"]["new"] == counts.playlists
    assert (done["entries"]["new"], done["entries"]["repeated"]) == (counts.entries, counts.twice)
    sizes = [len(tracks) for tracks in kept(store).values()]
    assert (len(sizes), min(sizes), max(sizes)) == (counts.playlists, counts.shortest, counts.longest)


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
    command = recipe("catalog", some_lines(tmp_path, shared_data))
    done, named = ask(*command, "--blank", "NA", "--dry-run"), ask(*command, "--dry-run")
    assert [refused["line"] for refused in done["refused"]] == [54, 1185, 1186]
    assert named["refused"] == []
    if not (done | named).get("at_most"):  # on a busy machine a dry run may count names again
        assert named["artists"]["new"] - done["artists"]["new"] == 1


def every_twelfth_playlist(folder: Path, shared_data: Callable[[str], Path]) -> Path:
    """Write the rows of every twelfth playlist of spotify_songs to a file."""
    playlists: dict[str, int] = {}

    def is_wanted(row: list[str]) -> bool:
        return playlists.setdefault(row[column], len(playlists)) % 12 == 7  # one of them has a tempo of 0

    some = folder / "some.csv"
    with opened(shared_data(SONGS)) as lines, some.open("w", encoding="utf-8", newline="") as out:
        songs, kept_songs = csv.reader(lines), csv.writer(out)
        header = next(songs)
        column = header.index("playlist_id")
        kept_songs.writerows([header, *filter(is_wanted, songs)])
    return some


def some_lines(folder: Path, shared_data: Callable[[str], Path]) -> Path:
    """Write the header of spotify_songs and some lines, among them three without names, to a file."""
    some = folder / "some.csv"
    with opened(shared_data(SONGS)) as lines:
        some.write_text(next(lines) + "".join(itertools.islice(lines, 8_099, 9_299)), "utf-8")
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
