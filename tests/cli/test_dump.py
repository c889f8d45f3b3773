"""`musicsvc plays dump`: the rows of all files, a manifest that names them, and later only what changed."""

import random
from pathlib import Path

import pytest

from musicsvc.clock import isoformat
from musicsvc.reports import dumps as folders
from musicsvc.store.engine.store import Store
from tests.cli.conftest import Json, Run
from tests.support import dumps
from tests.support.bounds import Bounds
from tests.support.dumps import TABLES, manifest, rows, stored


@pytest.fixture
def played(store: Store) -> int:
    """Create 700 plays. Return their number without repeats."""
    return store.write(lambda: dumps.fill(random.Random(4), 700)).result()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "dump"


def test_a_dump_has_all_plays_and_tables_and_the_manifest_names_its_files(
    ask: Json, store: Store, played: int, folder: Path
) -> None:
    done = ask("plays", "dump", "--output", str(folder))
    plays = dumps.plays(folder)
    assert plays == stored(store)
    assert len(plays) == played > 600
    assert set(rows(f"{folder}/plays/*/*.parquet", "day = played_at::DATE")) == {(True,)}
    for table, (statement, columns) in TABLES.items():
        found = rows(f"{folder}/tables/{table}.parquet", columns)
        assert dumps.in_order(found) == stored(store, statement) != []
    dumps.require_valid(folder)
    told = manifest(folder)
    assert sum(each["rows"] for each in told["files"] if each["path"].startswith("plays/")) == played
    assert (told["schema_version"], told["complete_from"]) == (1, None)
    assert told["last_play"] == done["last_play"] == isoformat(max(at for _, at, *_ in plays))
    assert told["definitions"]["plays.period"] == "Plays in the period."
    assert set(told["columns"]) == {"plays", *TABLES}
    assert (done["plays"], len(done["written"]), done["removed"]) == (played, len(told["files"]), [])
    assert done["bytes"] == sum(each["bytes"] for each in told["files"])


@pytest.mark.usefixtures("played")
def test_the_plays_of_a_day_are_sorted_and_nothing_in_a_dump_names_a_listener(run: Run, folder: Path) -> None:
    run("plays", "dump", "--output", str(folder))
    for file in folder.glob("plays/*/*.parquet"):
        found = rows(str(file), "track_id, played_at")
        assert found == sorted(found)
    assert not [path for path, content in dumps.files(folder).items() if b"fan-" in content]


@pytest.mark.usefixtures("played")
def test_a_second_run_writes_nothing_and_another_folder_gets_the_same_bytes(
    ask: Json, run: Run, folder: Path, tmp_path: Path
) -> None:
    first = ask("plays", "dump", "--output", str(folder))
    files = manifest(folder)["files"]
    second = ask("plays", "dump", "--output", str(folder))
    assert (second["written"], second["removed"], second["plays"]) == ([], [], first["plays"])
    assert manifest(folder)["files"] == files
    assert manifest(folder)["dumped_at"] > isoformat(0)
    run("plays", "dump", "--output", str(tmp_path / "other"))
    assert dumps.files(tmp_path / "other") == dumps.files(folder)


@pytest.mark.usefixtures("played")
def test_a_file_that_was_lost_or_cut_is_written_again(ask: Json, run: Run, folder: Path) -> None:
    run("plays", "dump", "--output", str(folder))
    before = dumps.files(folder)
    lost, cut = (folder / path for path in sorted(before)[:2])
    lost.unlink()
    cut.write_bytes(b"PAR1")
    done = ask("plays", "dump", "--output", str(folder))
    assert sorted(done["written"]) == sorted(before)[:2]
    assert dumps.files(folder) == before


@pytest.mark.slow
@pytest.mark.usefixtures("played")
def test_a_day_with_many_plays_has_several_files(
    run: Run, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    run("plays", "dump", "--output", str(folder))
    whole = dumps.plays(folder)
    bounds(plays_per_part=40, plays_per_read=9)
    run("plays", "dump", "--output", str(folder))
    assert dumps.plays(folder) == whole == stored(store)
    numbers = {file.name for file in folder.glob("plays/*/*.parquet")}
    assert numbers >= {"part-0.parquet", "part-1.parquet", "part-2.parquet"}
    monkeypatch.undo()
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)
    run("plays", "dump", "--output", str(folder))
    assert {file.name for file in folder.glob("plays/*/*.parquet")} == {"part-0.parquet"}
    dumps.require_valid(folder)


def test_a_database_without_plays_has_tables_only(ask: Json, folder: Path) -> None:
    done = ask("plays", "dump", "--output", str(folder))
    assert (done["plays"], done["last_play"], done["files"]) == (0, None, len(TABLES))
    assert rows(f"{folder}/tables/tracks.parquet") == []


@pytest.mark.usefixtures("played")
def test_a_folder_with_other_files_is_refused(run: Run, folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "letter.txt").write_text("Dear Ann")
    refused = run("plays", "dump", "--output", str(folder), expect=1)
    assert refused.stderr == f"Error: {folder} has other files than a dump of this version. Name a new folder.\n"
    assert [each.name for each in folder.iterdir()] == ["letter.txt"]
    (folder / "manifest.json").write_text('{"schema_version": 2}')
    run("plays", "dump", "--output", str(folder), expect=1)
    file = tmp_path / "letter.txt"
    file.write_text("Dear Ann")
    assert f"{file} is a file. Name a folder." in run("plays", "dump", "--output", str(file), expect=1).stderr
    run("plays", "dump", expect=2)


@pytest.mark.usefixtures("played")
def test_two_dumps_to_one_folder_at_once_are_refused(run: Run, folder: Path) -> None:
    with folders.opened(folder):
        refused = run("plays", "dump", "--output", str(folder), expect=1)
    assert refused.stderr == f"Error: Another dump to {folder} is running. Wait until it ends.\n"
    run("plays", "dump", "--output", str(folder))
    dumps.require_valid(folder)
