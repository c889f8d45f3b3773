"""The daily work of a server leaves no file of the data folder open."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store.activity.log import LogFile
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sqlite import file_locks, files
from musicsvc.store.engine.sqlite.reserved_space import ReservedSpace
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from tests.conftest import NOW
from tests.support.backed_up import add, restore
from tests.support.bounds import Bounds
from tests.support.open_files import open_files


@pytest.mark.only_on("sqlite")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of a process in /proc")
def test_every_file_that_is_opened_is_closed(store_url: str, tmp_path: Path) -> None:
    path, folder = Path(store_url.removeprefix("sqlite:///")), tmp_path / "backups"
    folder.mkdir()
    (folder / ".musicsvc-20260101T000000Z.db.partial").touch()
    with (tmp_path / "open").open("wb"):
        assert open_files(tmp_path) == [str(tmp_path / "open")]

    add(store_url, "one")
    restore(create.create(path, backup_folder.new_name(folder, NOW)).file, path)
    assert backup_folder.leftovers(folder) == []
    space = ReservedSpace(path)
    assert (space.fill(), space.release()) == ("", True)
    log = LogFile(tmp_path / "activity.db")
    log.prepare()
    log.close()
    counter = SqliteHitCounter(tmp_path / "limits.db", lambda: 0)
    counter.check()
    counter.close()

    assert open_files(tmp_path) == []


@pytest.mark.only_on("sqlite")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of a process in /proc")
def test_every_file_that_is_refused_is_closed(store_url: str, tmp_path: Path, bounds: Bounds) -> None:
    bounds(shared_timeout=0, counter_lock_seconds=0)
    path, foreign = Path(store_url.removeprefix("sqlite:///")), tmp_path / "foreign.db"
    files.create(foreign, 7)
    (tmp_path / "limits.db").write_bytes(foreign.read_bytes())
    for name in ("backup.db", "partial.db"):
        (tmp_path / name).write_bytes(b"no database")
    (tmp_path / ".taken.db.partial").mkdir()
    refused: list[Callable[[], object]] = [
        lambda: files.examine(foreign),
        lambda: LogFile(foreign).prepare(),
        lambda: LogFile(foreign).open_existing(),
        lambda: SqliteHitCounter(tmp_path / "limits.db", lambda: 0).check(),
        lambda: create.create(path, tmp_path / "missing" / "one.db"),
        lambda: create.create(path, tmp_path / "taken.db"),
        lambda: create.create(foreign, tmp_path / "one.db"),
        lambda: restore(tmp_path / "backup.db", path),
        lambda: restore(foreign, path),
    ]
    for call in refused:
        with pytest.raises(Failure):
            call()
        assert open_files(tmp_path) == []

    with file_locks.exclusive(path):
        held = open_files(tmp_path)
        for opened in (lambda: file_locks.use(path), lambda: file_locks.exclusive(path, timeout=0).__enter__()):
            with pytest.raises(Failure):
                opened()
            assert open_files(tmp_path) == held
        assert len(held) == 1
