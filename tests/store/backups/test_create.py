"""A backup contains one snapshot of a database in use; only complete backups get the name of one."""

import os
import stat
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.errors import Failure
from musicsvc.store.backups import create, verify
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag
from tests.support.backed_up import PARTS, fill, names, unit

pytestmark = pytest.mark.only_on("sqlite")
LONGEST_WAIT = 2.0  # seconds; a writer would wait 5 for a lock of the backup


class Stop(Exception):
    """Raised to stop a backup."""


@pytest.fixture
def path(store: Store) -> Path:
    """The file of an open store of a few megabytes."""
    return fill(store)


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


@pytest.mark.slow
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


def test_concurrent_backups_to_one_name_are_refused(path: Path, folder: Path) -> None:
    with backup_folder.draft(folder / "one.db"), pytest.raises(Failure, match="is in progress"):
        create.create(path, folder / "one.db")
    create.create(path, folder / "one.db")


def test_a_file_that_another_process_removed_before_it_was_locked_is_created_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire, removed = file_locks.acquire, list[int]()

    def acquire_late(descriptor: int, **options: Any) -> bool:
        if not removed:
            removed.append(descriptor)
            next(folder.glob(".one.db*")).unlink()
        return acquire(descriptor, **options)

    monkeypatch.setattr(file_locks, "acquire", acquire_late)
    with backup_folder.draft(folder / "one.db") as made:
        assert made.path.exists()
        assert not is_open_and_deleted(removed[0])


def is_open_and_deleted(descriptor: int) -> bool:
    try:
        return os.fstat(descriptor).st_nlink == 0
    except OSError:
        return False
