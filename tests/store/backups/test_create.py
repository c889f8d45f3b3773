"""A backup contains one snapshot of a database in use; only complete backups get the name of one."""

import shutil
import stat
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import apsw
import pytest

from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag
from tests.faults import disk, small_disk
from tests.support.damage import overwrite_middle_page

pytestmark = pytest.mark.only_on("sqlite")
ROOT = Path(__file__).resolve().parents[3]
PARTS = 3
GENRES = """
INSERT INTO genre (name, display_name)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3999)
SELECT 'first-' || i, printf('%1000d', i) FROM n
"""
TAGS = "INSERT INTO tag (name) SELECT name || '.' || part.value FROM genre, json_each('[0, 1, 2]') AS part"
LONGEST_WAIT = 2.0  # seconds; a writer would wait 5 for a lock of the backup


class Stop(Exception):
    """Raised to stop a backup."""


@pytest.fixture
def path(store: Store) -> Path:
    """The file of an open store of a few megabytes."""
    store.write(lambda: current().execute_sql(GENRES) and current().execute_sql(TAGS) and None).result()
    return Path(store.url.removeprefix("sqlite:///"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "backups"
    made.mkdir(mode=0o700)
    return made


def unit(name: str) -> None:
    """Write a genre and its tags in one unit."""
    Genre.insert(name=name, display_name=name).execute()
    for part in range(PARTS):
        Tag.insert(name=f"{name}.{part}").execute()


def names(path: Path) -> tuple[set[str], set[str]]:
    """The genres and tags of a backup."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    genres = {str(name) for (name,) in connection.execute("SELECT name FROM genre")}
    tags = {str(name) for (name,) in connection.execute("SELECT name FROM tag")}
    connection.close()
    return genres, tags


def test_a_backup_is_a_complete_database_that_only_its_owner_can_read(store: Store, path: Path, folder: Path) -> None:
    made = create.create(path, folder / "one.db")
    genres, tags = store.read(
        lambda: ({row.name for row in Genre.select()}, {row.name for row in Tag.select()})
    ).result()
    assert names(made.file) == (genres, tags)
    assert made.facts == verify.check(made.file)
    assert (made.size, made.facts.counts["genre"]) == (made.file.stat().st_size, 4000)
    assert [(file.name, stat.S_IMODE(file.stat().st_mode)) for file in folder.iterdir()] == [("one.db", 0o600)]


def test_writers_continue_during_a_backup_of_its_first_snapshot(store: Store, path: Path, folder: Path) -> None:
    waits: list[float] = []

    def told(_done: float, _total: float) -> None:
        began = time.monotonic()
        store.write(lambda: unit(f"meanwhile-{len(waits)}")).result()
        waits.append(time.monotonic() - began)

    made = create.create(path, folder / "one.db", told)

    assert len(waits) > 3
    assert max(waits) < LONGEST_WAIT
    assert names(made.file)[0] == {f"first-{number}" for number in range(4000)}


def test_a_backup_with_concurrent_writers_contains_complete_units(store: Store, path: Path, folder: Path) -> None:
    ended = threading.Event()

    def write(thread: int) -> None:
        number = 0
        while not ended.is_set():
            store.write(partial(unit, f"{thread}-{number}")).result()
            number += 1

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    made = [create.create(path, folder / f"{number}.db") for number in range(5)]
    ended.set()
    for thread in threads:
        thread.join()

    seen: set[str] = set()
    for backup in made:
        genres, tags = names(backup.file)
        assert tags == {f"{name}.{part}" for name in genres for part in range(PARTS)}
        assert genres >= seen
        seen = genres
    assert len(seen) > 4000


def test_a_backup_gets_its_name_only_after_verification(path: Path, folder: Path) -> None:
    target = backup_folder.new_name(folder, 0)
    seen: set[str] = set()

    def told(_done: float, _total: float) -> None:
        seen.update(file.name for file in folder.iterdir())
        assert backup_folder.entries(folder) == []

    create.create(path, target, told)
    assert seen == {f".{target.name}.partial"}
    assert [entry.file for entry in backup_folder.entries(folder)] == [target]


@pytest.mark.parametrize("moment", [0.0, 0.5, 1.0])
def test_a_stopped_backup_leaves_no_file(path: Path, folder: Path, moment: float) -> None:
    def told(done: float, total: float) -> None:
        if done >= moment * total:
            raise Stop

    with pytest.raises(Stop):
        create.create(path, folder / "one.db", told)
    assert list(folder.iterdir()) == []


def test_a_backup_removes_leftovers_but_not_a_backup_in_progress(path: Path, folder: Path) -> None:
    left = folder / ".musicsvc-20260101T000000Z.db.partial"
    left.write_bytes(b"half")
    other = folder / ".another-program.partial"
    other.touch()
    with backup_folder.draft(folder / "musicsvc-20260101T000001Z.db") as under_way:
        made = create.create(path, folder / "one.db")
        assert {file.name for file in folder.iterdir()} == {under_way.path.name, made.file.name, other.name}


def test_leftovers_are_listed_and_not_removed(folder: Path) -> None:
    draft = folder / f".{backup_folder.new_name(folder, 0).name}.partial"
    draft.touch()
    assert [backup_folder.leftovers(folder) for _ in range(2)] == [[draft], [draft]]


def test_nothing_is_ever_overwritten(path: Path, folder: Path) -> None:
    (folder / "one.db").write_text("dear to somebody")
    with pytest.raises(Failure, match=r"one\.db exists"):
        create.create(path, folder / "one.db")

    def told(_done: float, _total: float) -> None:
        (folder / "two.db").write_text("came meanwhile")

    with pytest.raises(Failure, match=r"two\.db exists"):
        create.create(path, folder / "two.db", told)
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "one.db": "dear to somebody",
        "two.db": "came meanwhile",
    }


def test_two_backups_of_one_second_have_two_names(folder: Path) -> None:
    first = backup_folder.new_name(folder, 0)
    first.touch()
    second = backup_folder.new_name(folder, 0, "")
    second.touch()
    assert [entry.file.name for entry in backup_folder.entries(folder)] == [
        "musicsvc-19700101T000000Z.db",
        "musicsvc-19700101T000000Z-2.db",
    ]


def test_a_missing_folder_is_reported(path: Path, tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"There is no folder .*none\. Create it"):
        create.create(path, tmp_path / "none" / "one.db")


def test_a_full_disk_is_reported_before_copying(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage._replace(free=1_500_000))
    with pytest.raises(Failure, match=r"no room for a backup in .*: it needs [0-9.]+ MB, and 1\.5 MB are free"):
        create.create(path, folder / "one.db")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "says"),
    [(apsw.SQLITE_FULL, "The disk of .* is full"), (apsw.SQLITE_IOERR_WRITE, "cannot be written")],
)
def test_a_disk_error_while_copying_is_reported_and_leaves_no_file(
    store: Store, path: Path, folder: Path, code: int, says: str
) -> None:
    writes = 0

    def fault(operation: str, file: str) -> None:  # noqa: ARG001 - the disk gives it
        nonlocal writes
        writes += operation == "write"
        if writes > 300:
            raise disk.error(code)

    with disk.mounted(folder, fault), pytest.raises(Failure, match=says) as refusal:
        create.create(path, folder / "one.db")
    assert str(folder / "one.db") in refusal.value.message
    assert "\n" not in refusal.value.message
    assert list(folder.iterdir()) == []
    store.write(lambda: unit("after")).result()
    assert "after" in names(create.create(path, folder / "one.db").file)[0]


def test_a_disk_that_fills_up_while_copying_gives_no_backup(path: Path, tmp_path: Path) -> None:
    with small_disk.mounted(tmp_path / "small") as small:

        def told(done: float, total: float) -> None:
            if total > 1 and done > total / 2:
                small.fill()

        target = small.folder / "one.db"
        with pytest.raises(Failure, match=rf"The (disk of|backup) {target} (is full|cannot be written)"):
            create.create(path, target, told)
        small.empty()
        assert list(small.folder.iterdir()) == []
        create.create(path, target)


def test_concurrent_backups_to_one_name_are_refused(path: Path, folder: Path) -> None:
    with backup_folder.draft(folder / "one.db"), pytest.raises(Failure, match="is in progress"):
        create.create(path, folder / "one.db")
    create.create(path, folder / "one.db")


def test_a_damaged_copy_is_not_kept(path: Path, folder: Path) -> None:
    def told(done: float, total: float) -> None:
        if done == total == 1:  # copied, before it is verified
            (draft,) = folder.iterdir()
            with draft.open("r+b") as file:
                file.seek(draft.stat().st_size // 2 // 4096 * 4096)
                file.write(b"\xa5" * 8192)

    with pytest.raises(Failure, match=rf"^The backup {folder}/one\.db was not kept: the copy is damaged.* db check$"):
        create.create(path, folder / "one.db", told)
    assert list(folder.iterdir()) == []


def test_a_copy_that_lacks_a_row_is_not_kept(path: Path, folder: Path) -> None:
    def lose(done: float, total: float) -> None:
        if done == total == 1:  # copied, before it is verified
            (draft,) = folder.iterdir()
            connection = apsw.Connection(str(draft))
            connection.execute("DELETE FROM tag WHERE id = 1")
            connection.close()

    with pytest.raises(Failure, match=rf"^The backup {folder}/one\.db differs from the database"):
        create.create(path, folder / "one.db", lose)
    assert list(folder.iterdir()) == []


def test_dangling_rows_are_reported_as_damage_of_the_database(path: Path, folder: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO track_genre (track_id, genre_id) VALUES (7, 9999)")
    connection.close()
    with pytest.raises(
        Failure, match=rf"^The database {path} is damaged, .*refers to a missing row\. Run: musicsvc db check$"
    ):
        create.create(path, folder / "one.db")
    assert list(folder.iterdir()) == []


def test_a_damaged_database_gives_no_backup(store_url: str, folder: Path) -> None:
    with opening.connect(store_url) as store:
        store.write(lambda: current().execute_sql(GENRES) and None).result()
    path = Path(store_url.removeprefix("sqlite:///"))
    overwrite_middle_page(path)
    with pytest.raises(Failure, match="damaged"):
        create.create(path, folder / "one.db")
    assert list(folder.iterdir()) == []


def test_a_backup_killed_before_any_step_is_cleaned_up_by_the_next(
    store: Store, path: Path, tmp_path: Path, *, slow: bool
) -> None:
    store.close()
    command = [
        sys.executable,
        "-m",
        "tests.store.backups.killed_backups",
        str(path),
        str(tmp_path),
        "1" if slow else "15",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
