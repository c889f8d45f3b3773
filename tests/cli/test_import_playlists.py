"""`musicsvc import playlists`, and the recipes of docs/import.md on real data."""

import csv
import gzip
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Playlist, PlaylistTrack, Track
from tests.cli.conftest import Json, Run

OWNER = "me@example.test"
SONGS = "track,artist,playlist\nT,A,P\nT,A,P\nU,A,P\n,A,P\n"


def test_a_file_goes_through_both_commands(run: Run, tmp_path: Path, store: Store) -> None:
    file = tmp_path / "songs.csv"
    file.write_text(SONGS)
    store.write(lambda: users.create(OWNER, now=1).id).result()
    errors = run("import", "catalog", str(file)).stderr
    assert "Playlist entries, left out (run: musicsvc import playlists): 4." in errors
    done = run("import", "playlists", str(file), "--manager", OWNER.upper(), "--public")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["kind", "new", "changed", "repeated", "refused"],
        ["playlists", "1", "0", "2", "0"],
        ["entries", "2", "0", "1", "1"],
    ]
    assert done.stderr.splitlines() == ["line 5: track is missing", "4 rows read, 1 of them refused."]
    assert store.read(lambda: [(each.name, each.public) for each in Playlist.select()]).result() == [("P", True)]


def test_playlists_have_an_owner(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "songs.csv"
    file.write_text(SONGS)
    errors = run("import", "playlists", str(file), expect=2).stderr
    assert "Playlists need an owner. Add --user EMAIL." in errors
    assert OWNER in run("import", "playlists", str(file), "--manager", OWNER, expect=1).stderr


def recipe(command: str, file: Path) -> list[str]:
    """The command of docs/import.md for spotify_songs, with this file."""
    document = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text("utf-8")
    (block,) = re.findall(rf"```sh\n(musicsvc import {command} spotify_songs.*?)```", document, re.DOTALL)
    return [
        str(file) if part == "spotify_songs.csv.gz" else part for part in shlex.split(block.replace("\\\n", " "))[1:]
    ]


def test_the_recipe_takes_the_playlists_of_spotify_songs_in_their_order_and_a_second_run_changes_nothing(
    ask: Json, store: Store, shared_data: Callable[[str], Path]
) -> None:
    file = shared_data("spotify_songs/spotify_songs.csv.gz")
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = Counter[str]()
        wanted: dict[tuple[str, str], dict[str, None]] = {}
        names: dict[str, str] = {}
        for song in csv.DictReader(lines):
            rows[song["playlist_id"]] += 1
            name = names.setdefault(song["playlist_id"], song["playlist_name"].strip())
            wanted.setdefault((song["playlist_id"], name), {})[song["track_id"]] = None
    ask(*recipe("catalog", file))
    store.write(lambda: users.create(OWNER, now=1).id).result()

    began = time.monotonic()
    done = ask(*recipe("playlists", file))
    assert time.monotonic() - began < 30
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
