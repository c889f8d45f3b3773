"""`musicsvc import catalog`, and the recipe of docs/import.md on real data."""

import csv
import json
import re
import shlex
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Follow, ImportRun, Track, User
from tests.cli.conftest import Json, Run
from tests.cli.test_terminal import Terminal
from tests.support import label_files
from tests.support.bounds import Bounds
from tests.support.label_files import write
from tests.support.program import Program, until
from tests.support.serving import Client
from tests.support.workbooks import write_xlsx

SONGS = "track,artist,album,bpm\nT,A,X,90\n,A,X,90\nU,B,X,fast\nV,B,,\n"


@pytest.fixture
def songs(tmp_path: Path) -> str:
    file = tmp_path / "songs.csv"
    file.write_text(SONGS)
    return str(file)


def test_a_dry_run_in_parts_says_that_its_counts_are_upper_bounds(
    run: Run, ask: Json, songs: str, bounds: Bounds
) -> None:
    bounds(longest_trial=0, rows_a_unit=1)
    printed = run("import", "catalog", songs, "--dry-run").stdout.splitlines()
    assert printed[1].split() == ["artists", "at", "most", "3", "0", "0", "0"]
    found = ask("import", "catalog", songs, "--dry-run")
    assert (found["at_most"], found["artists"]["new"]) == (True, 3)


def test_an_import_says_which_of_several_sheets_was_read(run: Run, ask: Json, tmp_path: Path) -> None:
    rows = [("Track", "Artist"), ("T", "A")]
    file = str(write_xlsx(tmp_path / "songs.xlsx", rows, Old=[*rows, ("U", "A")]))
    read = "Read the sheet Sheet, not Old."
    printed = run("import", "catalog", file, "--dry-run").stderr.splitlines()
    assert printed[0] == f"{read} To read another one, add --sheet NAME."
    assert ask("import", "catalog", file, "--dry-run")["remark"] == read
    found = ask("import", "catalog", file, "--sheet", "Old", "--dry-run")
    assert (found["rows"], "remark" in found) == (2, False)


def test_an_import_says_which_encoding_was_guessed_and_another_can_be_named(
    run: Run, ask: Json, tmp_path: Path
) -> None:
    file = tmp_path / "songs.csv"
    file.write_bytes("Track,Artist\nJóga,Björk\n".encode("mac-roman"))
    read = "The file is not UTF-8 and was read as Mac Roman."
    printed = run("import", "catalog", str(file), "--dry-run").stderr.splitlines()
    assert f"{read} If it is another, add --encoding NAME." in printed
    assert ask("import", "catalog", str(file), "--dry-run")["remark"] == read
    assert "remark" not in ask("import", "catalog", str(file), "--encoding", "cp850", "--dry-run")
    assert "remark" not in ask("import", "catalog", str(file), "--encoding", "macintosh")
    assert [each["name"] for each in ask("artist", "list")] == ["Björk"]
    for name in ("rot13", "zip", "utf-7", "no such", ""):
        done = run("import", "catalog", str(file), "--encoding", name, expect=2)
        assert "There is no encoding" in " ".join(done.stderr.split())
    book = write_xlsx(tmp_path / "songs.xlsx", [("Track", "Artist"), ("T", "A")])
    assert "Leave out --encoding." in run("import", "catalog", str(book), "--encoding", "cp1252", expect=1).stderr


def test_an_import_names_its_new_artists_and_says_how_to_divide_those_that_may_be_several(
    run: Run, ask: Json, tmp_path: Path
) -> None:
    file = tmp_path / "songs.csv"
    file.write_text("Title,Credited artist,Album,Album artist\nT,A & B,X,A & B\nU,C x A,,\nV,A,,\n")
    printed = run("import", "catalog", str(file), "--dry-run").stderr.splitlines()
    assert "New artists: A & B (&), C x A (x), A." in printed
    (told,) = [line for line in printed if "may be several" in line]
    option = shlex.split(told.partition("all signs of their column: ")[2])
    assert option == ["--divide", "Credited artist=& x", "--divide", "Album artist=& x"]
    found = ask("import", "catalog", str(file), *option)
    assert found["new_artists"] == [{"name": name, "marks": []} for name in ("A", "B", "C")]
    assert found["columns"][1]["written"] == "divided at & x"
    file.write_text("Title,Credited artist\n" + "".join(f"T{n},New {n}\n" for n in range(60)))
    assert "New 49 and 10 more." in run("import", "catalog", str(file)).stderr
    assert "(divided at & x as in an earlier import)" in run("import", "catalog", str(file)).stderr
    wrong = run("import", "catalog", str(file), "--divide", "Title=&", expect=1).stderr
    assert "No column 'Title' has names to divide." in wrong
    assert "Invalid value for --divide" in run("import", "catalog", str(file), "--divide", "&", expect=2).stderr


def test_control_characters_of_a_file_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "evil.csv"
    file.write_text("track,artist,\x1b[31mred\nT,A,x\nT\x00,A,x\n")
    done = run("import", "catalog", str(file))
    assert "\x1b" not in done.stdout + done.stderr
    assert "line 3: track must not contain a NUL character" in done.stderr


def test_a_bar_is_drawn_on_a_terminal_alone_and_never_on_stdout(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "[bold] songs.csv"
    file.write_text(SONGS)
    monkeypatch.setenv("TERM", "xterm")
    assert "━" not in run("import", "catalog", str(file)).stderr
    monkeypatch.setenv("FORCE_COLOR", "1")  # what Rich takes for a terminal
    done = run("import", "catalog", str(file), "--json")
    assert "[bold] songs.csv" in done.stderr
    assert "━" in done.stderr
    assert json.loads(done.stdout)["rows"] == 4
    assert "━" not in run("import", "catalog", str(file), "--quiet").stderr
    monkeypatch.setenv("TERM", "dumb")
    assert run("import", "catalog", str(file), "--json").stderr == ""


# `musicsvc import follows`, and the recipe of docs/import.md on real data.


def recipe(file: Path) -> list[str]:
    """The command of docs/import.md, with this file."""
    document = (Path(__file__).resolve().parents[2] / "docs" / "import.md").read_text("utf-8")
    (block,) = re.findall(r"```sh\n(musicsvc import follows lastfm_asia.*?)```", document, re.DOTALL)
    return [
        str(file) if part == "lastfm_asia_edges.csv" else part for part in shlex.split(block.replace("\\\n", " "))[1:]
    ]


@pytest.mark.slow
async def test_the_recipe_takes_the_real_network_and_its_lists_page_through_it_right(
    shared_data: Callable[[str], Path], ask: Json, store: Store, anonymous: Client, clock: MovableClock
) -> None:
    file = shared_data("lastfm_asia/lastfm_asia_edges.csv")
    with file.open(encoding="utf-8", newline="") as lines:
        edges = [(row["node_1"], row["node_2"]) for row in csv.DictReader(lines)]
    done = ask(*recipe(file))
    assert (done["accounts"]["new"], done["follows"]["new"], done["refused"]) == (7624, 27806, [])
    again = ask(*recipe(file))
    assert (again["accounts"]["new"], again["follows"]) == (
        0,
        {"new": 0, "changed": 0, "repeated": 27806, "refused": 0},
    )

    ids = store.read(lambda: dict(User.select(User.external_id, User.id).tuples().iterator())).result()
    kept = store.read(
        lambda: list(Follow.select(Follow.follower, Follow.followed).order_by(Follow.id).tuples())
    ).result()
    assert kept == [(ids[follower], ids[followed]) for follower, followed in edges]

    followed, follower = Counter(pair[1] for pair in edges), Counter(pair[0] for pair in edges)
    chosen = {followed.most_common(1)[0][0], follower.most_common(1)[0][0], "0", edges[-1][1]}
    for name in sorted(chosen):
        client = anonymous.holding(_token(store, clock, ids[name]))
        assert await _all(client, "followers") == [ids[one] for one, other in reversed(edges) if other == name]
        assert await _all(client, "followed-users") == [ids[other] for one, other in reversed(edges) if one == name]


def _token(store: Store, clock: MovableClock, user_id: int) -> str:
    def make() -> str:
        User.update(api_access=True).where(User.id == user_id).execute()
        return tokens.create(users.get(user_id), "test", now=clock.now())[1]

    return store.write(make).result()


async def _all(client: Client, path: str) -> list[int]:
    """Return the ids on all pages of a list of the caller, and check that each page has the right total."""
    found: list[int] = []
    totals = set()
    page = 1
    while rows := (answer := (await client.get(f"users/me/{path}?page={page}")).json["pagination"])["data"]:
        found += [row["id"] for row in rows]
        totals.add(answer["total"])
        page += 1
    totals.add(answer["total"])
    assert totals == {len(found)}
    assert len(found) == len(set(found))
    return found


# `musicsvc import list` and `import undo`: what is kept, what cannot be undone, and an undo that is killed.

LABEL = "label@label.test"


@pytest.mark.slow
def test_an_undo_lists_what_it_will_do_and_asks_on_a_terminal(run: Run, ask: Json, tmp_path: Path) -> None:
    terminal = Terminal()
    run("user", "create", LABEL)
    ask("import", "catalog", write(tmp_path / "songs.csv", label_files.catalog()), "--user", LABEL)
    ask("import", "plays", write(tmp_path / "plays.csv", label_files.plays_of_others(50)), "--user", LABEL)
    later = [row | {"track_number": 20 + at} for at, row in enumerate(label_files.catalog()[:3])]
    ask("import", "catalog", write(tmp_path / "more.csv", later), "--user", LABEL)
    before = ask("import", "list")
    listed = "Import 1 (catalog, songs.csv) will be undone.\nDeletes: 5 tracks.\nKeeps tracks (plays, import 3): 1.\n"
    shown = terminal.run("import", "undo", "1", answers={"Undo import 1? [y/N]: ": "n\n"}, expect=1)
    assert listed in shown
    assert ask("import", "list") == before
    shown = terminal.run("import", "undo", "3", answers={"Undo import 3? [y/N]: ": "n\n"}, expect=1)
    assert "Deletes: nothing.\nRestores earlier values of: 3 tracks.\n" in shown
    shown = terminal.run("import", "undo", "2", answers={"Undo import 2? [y/N]: ": "y\n"})
    assert "Deletes: 34 plays.\n" in shown
    assert "Import 2 is undone: 34 rows taken back." in shown
    assert "Undo import" not in run("import", "undo", "3", "--yes").stderr
    terminal.close()


@pytest.mark.slow
def test_an_undo_that_is_killed_is_continued_by_the_next(run: Run, ask: Json, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("track,artist,genre\n" + "".join(f"S{at},A{at % 97},g{at % 7}\n" for at in range(6_000)))
    assert ask("import", "catalog", str(file))["tracks"]["new"] == 6_000

    def tracks() -> int:
        return store.read(Track.select().count).result()

    with Program(tmp_path, "import", "undo", "1") as program:
        until(lambda: tracks() < 6_000)
        program.end(signal.SIGKILL)
    assert 0 < tracks() < 6_000
    assert store.read(lambda: ImportRun.get_by_id(1).state).result() == "undoing"
    assert run("db", "check").stderr.endswith("No problems found.\n")
    assert ask("import", "undo", "1")["import"]["state"] == "undone"
    assert [ask("import", "list")[0][name] for name in ("state", "rows")] == ["undone", 6_000]
    assert tracks() == 0
    assert run("db", "check").stderr.endswith("No problems found.\n")


def test_the_artist_of_rows_without_one_has_a_name_that_can_be_seen(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "songs.csv"
    file.write_text("track,artist\nA,\n")
    for name, problem in (("\x07", "Must not contain control characters"), ("\u200b", "Must contain a visible")):
        assert problem in run("import", "catalog", str(file), "--artist", name, expect=1).stderr


def test_a_mapped_column_that_no_object_has_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "songs.jsonl"
    file.write_text('{"track": "A", "artist": "B"}\n')
    done = run("import", "catalog", str(file), "--map", "Label=label", "artist=artist", "--dry-run")
    assert "No row has the column 'Label', which --map names.\n" in done.stderr
    assert "'artist'" not in done.stderr
