"""Failures of SQLite files that other tests do not reach, each with its whole message."""

import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from musicsvc.errors import Failure, Unavailable
from musicsvc.store.activity.log import LogFile, exists
from musicsvc.store.backups import create, restore
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sqlite import files, reserved_space
from musicsvc.store.engine.sqlite.reserved_space import ReservedSpace
from musicsvc.store.engine.sqlite.store import SqliteStore
from tests.conftest import NOW

pytestmark = pytest.mark.only_on("sqlite")
POSTGRES = "postgresql:///music"


def test_a_wal_counts_from_its_first_byte(tmp_path: Path) -> None:
    wal = tmp_path / "one.db-wal"
    found = [files._has_wal(tmp_path / "one.db")]
    for content in (b"", b"x"):
        wal.write_bytes(content)
        found.append(files._has_wal(tmp_path / "one.db"))
    assert found == [False, False, True]


def test_a_database_that_is_removed_while_it_is_opened_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.db"
    connect = apsw.Connection
    created = connect(str(path))
    created.pragma("application_id", files.APPLICATION_ID)
    created.close()

    def opened(*arguments: Any, **options: Any) -> apsw.Connection:
        connection = connect(*arguments, **options)
        path.unlink()
        return connection

    monkeypatch.setattr(apsw, "Connection", opened)
    with pytest.raises(Failure) as failed:
        files.examine(path)
    assert failed.value.message == f"There is no database at {path}. Run: musicsvc init"


def test_a_database_on_postgresql_has_no_file() -> None:
    with pytest.raises(Failure) as failed:
        create.database_file(POSTGRES)
    assert failed.value.message == create.POSTGRES
    assert files.wal_bytes(POSTGRES) is files.database_bytes(POSTGRES) is None


def test_a_file_that_another_process_removed_is_no_backup(tmp_path: Path) -> None:
    gone = tmp_path / "gone.db"
    assert not backup_folder._is_undamaged(gone, None)
    backup_folder._if_unlocked(gone, lambda _file: pytest.fail("there is no file"))


def test_any_other_error_while_a_file_is_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed, files.translated_open_errors(tmp_path / "one.db"):
        raise apsw.InternalError("odd")
    assert failed.value.message == f"The database {tmp_path}/one.db cannot be opened: odd."


def test_a_database_whose_lock_cannot_be_made_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "musicsvc.db"
    (tmp_path / f"{path.name}.migrating").mkdir()
    with pytest.raises(Failure) as failed:
        restore.restore(tmp_path / "backup.db", path, now=NOW)
    assert failed.value.message == f"{path} cannot be replaced: Is a directory. The old database was kept."


def test_a_log_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = LogFile(tmp_path / "file" / "activity.db")
    with pytest.raises(Failure) as failed:
        log.prepare()
    assert failed.value.message == f"The activity log {log.path} cannot be created: File exists."
    with pytest.raises(Unavailable, match=r"^The activity log is not open\.$"):
        log.read(exists)

    log = LogFile(tmp_path / "activity.db")
    files.create(log.path, files.LOG_ID)
    connection = apsw.Connection(str(log.path))
    connection.execute("CREATE TABLE activity (id INTEGER)")
    connection.close()
    with pytest.raises(Failure) as failed:
        log.prepare()
    assert failed.value.message == f"The activity log {log.path} cannot be created: table activity already exists."


def test_a_closed_store_reports_no_changes(store_url: str) -> None:
    store = SqliteStore(store_url)
    store.close()
    with pytest.raises(Unavailable, match=r"^The service is shutting down\.$"):
        store.changes()


def test_reserved_space_that_cannot_be_freed_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _size: int) -> None:
        raise OSError

    space = ReservedSpace(tmp_path / "musicsvc.db")
    assert (space.fill(), space.missing()) == ("", 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", refuse)
        assert not space.release()
    size = (tmp_path / reserved_space.NAME).stat().st_size
    assert size == reserved_space.SIZE == 4 * 2**20
    assert space.release()
    assert (tmp_path / reserved_space.NAME).stat().st_size == size - 2**19
