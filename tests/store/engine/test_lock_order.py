"""The locks of files that each operation on a SQLite database acquires, in order."""

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.errors import Failure, Unavailable
from musicsvc.store.activity.log import LogFile
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from musicsvc.store.schema import schema
from tests.support.backed_up import add, restore
from tests.support.bounds import Bounds

Flocks = Callable[[], list[str]]

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of a process in /proc"),
]
KINDS = {fcntl.LOCK_SH: "shared", fcntl.LOCK_EX: "exclusive", fcntl.LOCK_UN: "unlocked"}


@pytest.fixture
def flocks(monkeypatch: pytest.MonkeyPatch) -> Flocks:
    """Return a function that returns the calls of flock since its last call, by the name of the file."""
    calls: list[str] = []
    flock = fcntl.flock

    def record(descriptor: int, operation: int) -> None:
        name = Path(os.readlink(f"/proc/self/fd/{descriptor}")).name  # noqa: PTH115 - a link of the kernel
        kind = KINDS[operation & ~fcntl.LOCK_NB]
        waits = "" if operation & fcntl.LOCK_NB or operation == fcntl.LOCK_UN else ", waits"
        calls.append(f"{name}: {kind}{waits}")
        flock(descriptor, operation)

    def since() -> list[str]:
        found = calls.copy()
        calls.clear()
        return found

    monkeypatch.setattr(fcntl, "flock", record)
    return since


def test_a_database_is_locked_while_it_is_used_migrated_backed_up_and_restored(
    store_url: str, tmp_path: Path, flocks: Flocks
) -> None:
    path, folder = Path(store_url.removeprefix("sqlite:///")), tmp_path / "backups"
    folder.mkdir()
    leftover = ".musicsvc-20260101T000000Z.db.partial"
    add(store_url, "one")
    assert flocks() == [f"{path.name}.in-use: shared", f"{path.name}.in-use: unlocked"]
    schema.upgrade(store_url)
    assert flocks() == [f"{path.name}.migrating: exclusive, waits"]
    (folder / leftover).touch()
    assert backup_folder.leftovers(folder) == [folder / leftover]
    assert flocks() == [f"{leftover}: exclusive"]
    create.create(path, folder / "one.db")
    assert flocks() == [f"{leftover}: exclusive", ".one.db.partial: exclusive, waits"]
    restore(folder / "one.db", path)
    assert flocks() == [f"{path.name}.migrating: exclusive, waits", f"{path.name}.in-use: exclusive"]


def test_a_log_and_a_counter_are_locked_while_they_are_opened_and_replaced(
    tmp_path: Path, flocks: Flocks, bounds: Bounds
) -> None:
    bounds(counter_lock_seconds=0)
    with LogFile(tmp_path / "activity.db") as log:
        log.prepare()
        assert flocks() == ["activity.db.lock: exclusive, waits"]
        log.replace()
        assert flocks() == ["activity.db.lock: exclusive, waits"] * 2
    counter = SqliteHitCounter(tmp_path / "limits.db", lambda: 0)
    counter.check()
    counter.close()
    assert flocks() == [f"{tmp_path.name}: exclusive"]
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(Unavailable, match=f"{tmp_path} is locked by another program"):
        counter.check()
    os.close(folder)


def test_without_a_folder_for_the_lock_a_database_is_used_unlocked_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "musicsvc.db"
    file_locks.use(path).release()
    with pytest.raises(Failure) as failed, file_locks.exclusive(path):
        pass
    assert failed.value.message == f"The database {path} cannot be locked: No such file or directory."
