"""Account of what an import did not take, cell by cell and column by column, for which `--strict` refuses a file."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from musicsvc.cli import input_file
from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.files import readers
from musicsvc.store.models import Album, ImportRun, Track
from tests.cli.conftest import Json, Run
from tests.support.bounds import Bounds
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

HEADER = "external_id,track,artist,album,bpm,release_date,tags,label,Duration,Mood,Length"
SONGS = f"""{HEADER}
t,T,A,X,10,2001,a,L,whenever,calm,3:00
u,U,B,Y,90,2001-05,,,soon,x,3:00
u,U again,B,Y,90,2001-06,,,later,x,3:01
v,V,C,,401,2002-06,,L,never,,3:00
"""
KEPT = "differs from an earlier row of the same track, which was kept; line 4 has"
SAID = (
    "Cells left out: 2, bpm must be between 20 and 400; line 2 has 10.",
    "Cells left out: 1, label needs an album; line 5 has L.",
    f"Cells left out: 1, track {KEPT} U again.",
    f"Cells left out: 1, release_date {KEPT} 2001-06-01.",
)
PLAIN = "track,artist\nAir,Ann Example\n"
PLAYS = "artist,track,listener,played_at"
Strict = Callable[..., CompletedProcess[str]]


@pytest.fixture
def strict(run: Run) -> Strict:
    """Return a function that runs an import with `--strict`, whatever its exit code."""
    del run  # it has set the database
    return lambda *line, stdin="": run_in_process(("import", *line, "--strict"), stdin)


@pytest.fixture
def rows(store: Store) -> Callable[[], tuple[int, int]]:
    """Return a function that counts tracks and imports."""
    return lambda: store.read(lambda: (Track.select().count(), ImportRun.select().count())).result()


def written(folder: Path, content: str, name: str = "songs.csv") -> str:
    (folder / name).write_text(content, "utf-8")
    return str(folder / name)


@pytest.mark.parametrize("dry", [("--dry-run",), ()])
def test_all_that_an_import_does_not_take_is_said(run: Run, tmp_path: Path, dry: tuple[str, ...]) -> None:
    told = run("import", "catalog", written(tmp_path, SONGS), *dry).stderr.splitlines()
    assert [line for line in told if line.startswith("Cells left out")][:4] == [*SAID]
    (unread,) = [line for line in told if line.startswith("Column not read")]
    assert unread.startswith("Column not read: Duration, 4 cells, duration_ms must be ")
    assert unread.endswith("; line 2 has whenever.")


def test_artists_and_albums_of_a_row_that_repeats_a_track_are_said_to_come_in(
    run: Run, tmp_path: Path, store: Store
) -> None:
    content = "track,artist,album,isrc\nRag,Ann,One,GBAYE6800011\nRag,Bea,Two,GBAYE6800011\n"
    told = run("import", "catalog", written(tmp_path, content)).stderr
    for field, name in (("artist", "Bea"), ("album", "Two")):
        kept = f"which was kept; new {field}s come in without the track; line 3 has {name}."
        assert f"Cells left out: 1, {field} differs from an earlier row of the same track, {kept}\n" in told
    tracks, albums = store.read(lambda: (Track.select().count(), [each.name for each in Album.select()])).result()
    assert (tracks, sorted(albums)) == (1, ["One", "Two"])


def test_json_names_each_kind_of_cell_that_was_left_out_and_why_a_column_is_not_used(ask: Json, tmp_path: Path) -> None:
    content = SONGS.replace("Mood", "Catalog No.").replace("Length", "Time").replace("tags", "Song")
    told = ask("import", "catalog", written(tmp_path, content))
    assert [(each["field"], each["count"], each["line"], each["example"]) for each in told["left_out"]][:2] == [
        ("bpm", 2, 2, "10"),
        ("label", 1, 5, "L"),
    ]
    assert [(each["column"], each["field"], each["count"]) for each in told["unread_columns"]] == [
        ("Duration", "duration_ms", 4)
    ]
    assert {each["column"]: each["why"] for each in told["columns"] if each["field"] is None} == {
        "Song": "track is read as track",
        "Duration": "its cells cannot be read as duration_ms",
        "Catalog No.": "no field has such a name",
    }
    assert told["unused_columns"] == ["Song", "Duration", "Catalog No."]


def test_keys_of_json_lines_that_no_field_takes_are_named(run: Run, tmp_path: Path) -> None:
    lines = [
        {"track": "T", "artist": "A"},
        {"track": "U", "artist": "A", "colour": "red", "more": {"album": "X"}, "also": [{}]},
    ]
    file = written(tmp_path, "".join(f"{json.dumps(line)}\n" for line in lines), "songs.jsonl")
    told = run("import", "catalog", file).stderr
    assert "Unused columns: colour (no field has such a name).\n" in told
    assert "Unused columns: more, also (they have objects; write what is in them as values of rows).\n" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "content", "found"),
    [
        ("catalog", f"{PLAIN},Ann Example\n", "1 row refused"),
        ("catalog", "track,artist,bpm\nAir,Ann Example,1000\nJig,Ann Example,x\n", "2 cells left out"),
        ("catalog", "track,artist,Duration\nAir,Ann Example,soon\n", "1 column not read"),
        ("catalog", SONGS, "6 cells left out, 1 column not read"),
        ("plays", f"{PLAYS},isrc\nAnn Example,Air,zoe,1500000000,x\n", "1 cell left out"),
        ("plays", f"{PLAYS}\nAnn Example,Gone,zoe,1500000000\nAnn Example,Air,zoe,1500000100\n", "1 row refused"),
        ("playlists", "playlist,track,artist\nMine,Air,Ann Example\nMine,Gone,Ann Example\n", "1 row refused"),
        (
            "follows",
            "follower,followed\nzoe@label.test,ann@label.test\nzoe@label.test,gone@label.test\n",
            "1 row refused",
        ),
    ],
)
def test_strict_imports_nothing_unless_all_of_a_file_can_be(
    run: Run, strict: Strict, rows: Callable[[], tuple[int, int]], tmp_path: Path, kind: str, content: str, found: str
) -> None:
    for email in ("ann@label.test", "zoe@label.test"):
        run("user", "create", email)
    run("import", "catalog", written(tmp_path, PLAIN, "known.csv"))
    options = {"playlists": ("--user", "ann@label.test")}.get(kind, ())
    for dry in ((), ("--dry-run",)):
        done = strict(kind, written(tmp_path, content), *options, *dry)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == f"Error: Nothing was imported (--strict): {found}."
        assert rows() == (1, 1)
    done = strict(kind, written(tmp_path, content), *options, "--json")
    assert (done.returncode, json.loads(done.stdout)["strict"]) == (1, found.split(", "))
    assert run("import", kind, written(tmp_path, content), *options).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        "track,artist,Catalog No.\nAir,Ann Example,K-1\n",  # no field has such a name
        "track,artist,track_number,disc_number,bpm\nAir,Ann Example,0,0,0\n",  # none
        "Title,artist,Duration,Date,album\n Air ,Ann Example,3:45,2024-05,X\n",  # normalised
        "track,artist,bpm,duration_ms\nAir,Ann Example,,\n",
    ],
)
def test_strict_has_nothing_against_unknown_columns_and_other_notations(
    strict: Strict, rows: Callable[[], tuple[int, int]], tmp_path: Path, content: str
) -> None:
    assert strict("catalog", written(tmp_path, content), "--dry-run").returncode == 0
    assert rows() == (0, 0)
    assert strict("catalog", written(tmp_path, content)).returncode == 0
    assert rows() == (1, 1)


def test_a_track_with_another_date_than_its_album_keeps_it(strict: Strict, store: Store, tmp_path: Path) -> None:
    content = "track,artist,album,release_date\nAir,Ann Example,X,2001-01-01\nJig,Ann Example,X,2001-01-02\n"
    done = strict("catalog", written(tmp_path, content))
    assert (done.returncode, "than an earlier row of their album, which keeps that one: 1." in done.stderr) == (0, True)
    dates = [track.release_date for track in store.read(lambda: [*Track.select().order_by(Track.id)]).result()]
    assert dates == ["2001-01-01", "2001-01-02"]


def test_milliseconds_played_are_not_taken_for_the_time(run: Run, ask: Json, tmp_path: Path) -> None:
    run("import", "catalog", written(tmp_path, PLAIN))
    rows = "ts,ms_played,track,artist,listener\n2024-05-01T10:00:00Z,200000,Air,Ann Example,zoe\n"
    told = ask("import", "plays", written(tmp_path, rows, "plays.csv"))
    fields = {each["column"]: each["field"] for each in told["columns"]}
    assert (fields["ts"], fields["ms_played"], told["plays"]["new"]) == ("played_at", "listened_ms", 1)


def test_stdin_is_read_as_often_as_needed(
    strict: Strict, run: Run, rows: Callable[[], tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert strict("catalog", "-", stdin=PLAIN).returncode == 0
    refused = strict("catalog", "-", stdin=f"{PLAIN},Bob Sample\n")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (1, "line 3: track is missing")
    assert rows() == (1, 1)
    assert run("import", "catalog", "-", stdin="track,artist\nJig,Ann Example\n").returncode == 0
    damaged = run("import", "catalog", "-", stdin="track,track\n", expect=1)
    assert damaged.stderr == "Error: stdin: line 1 names the column 'track' twice; rename one.\n"
    monkeypatch.setattr(input_file, "LARGEST", len(PLAIN) - 1)
    large = run("import", "catalog", "-", stdin=PLAIN, expect=1)
    assert large.stderr.startswith("Error: stdin has more than ")
    assert rows() == (2, 2)


def test_what_has_changed_since_it_was_checked_is_not_imported(store: Store, tmp_path: Path, bounds: Bounds) -> None:
    bounds(rows_a_unit=10)
    lines = [f"Etude {number},Ann Example\n" for number in range(12)]
    file = Path(written(tmp_path, f"track,artist\n{''.join(lines)},Ann Example\n"))
    options = runner.ImportOptions(strict=True)
    with readers.open_file(file) as reader, pytest.raises(Failure, match="not as it was when it was checked"):
        runner.run(store, reader, Catalog(options), now=1, on_progress=lambda _: None)
    assert store.read(lambda: Track.select().count()).result() == 10
