"""`musicsvc import playlists`, and the recipes of docs/import.md on real data."""

from pathlib import Path

from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Playlist
from tests.cli.conftest import Run

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
    assert done.stderr.splitlines() == [
        "line 5: track is missing",
        "4 rows read, 1 of them refused.",
        "Import 2. To undo it: musicsvc import undo 2",
    ]
    assert store.read(lambda: [(each.name, each.public) for each in Playlist.select()]).result() == [("P", True)]


def test_playlists_have_an_owner(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "songs.csv"
    file.write_text(SONGS)
    errors = run("import", "playlists", str(file), expect=2).stderr
    assert "Playlists need an owner. Add --user EMAIL." in errors
    assert OWNER in run("import", "playlists", str(file), "--manager", OWNER, expect=1).stderr
