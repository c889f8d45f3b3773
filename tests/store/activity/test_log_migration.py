"""The activity log is created by one process while others try to read it, and is upgraded with its rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.errors import Outdated
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.log import LogFile, migrate
from musicsvc.store.engine.sql import bound, fetch
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.sqlite.files import SqliteDatabase
from musicsvc.store.schema import schema
from tests.store.activity.test_calls import PLAIN
from tests.support import upgrades

NEXT = """
oldest_program = "9.1.0"

def up(migrator, db):
    db.execute_sql("ALTER TABLE activity ADD COLUMN seconds INTEGER")
    db.execute_sql("UPDATE activity SET seconds = at / 1000000")
"""


class ObservedDatabase(SqliteDatabase):
    """A database that asks a reader after each statement whether there is a log."""

    def __init__(self, path: Path, reader: LogFile) -> None:
        super().__init__(path, {"journal_mode": "WAL"})
        self.reader, self.seen = reader, list[bool]()

    def execute_sql(self, *args: Any, **options: Any) -> Any:
        result = super().execute_sql(*args, **options)
        self.seen.append(self.reader.open_existing())
        return result


@pytest.mark.only_on("sqlite")
def test_a_reader_sees_no_log_or_a_whole_one_while_a_server_creates_it(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    files.create(path, files.LOG_ID)
    with LogFile(path) as reader:
        database = ObservedDatabase(path, reader)
        applied = migrate(database)
        database.close_all()
        assert applied[0] == "0001_baseline"
        assert database.seen == [False] * len(database.seen)
        assert len(database.seen) > 4
        assert reader.open_existing()


def test_a_log_of_an_older_version_is_upgraded_with_its_rows(new_database: Callable[..., str], tmp_path: Path) -> None:
    folder = upgrades.make_next(tmp_path / "next", {"9001_seconds": NEXT}, like=activity_log.MIGRATIONS)
    with schema.migrating(new_database(migrated=False)) as opened:
        assert migrate(opened)[0] == "0001_baseline"
        with bound(opened):
            calls.add([PLAIN._replace(at=seconds * 1_000_000) for seconds in (3, 7)])

        assert migrate(opened, folder) == ["9001_seconds"]
        assert migrate(opened, folder) == []
        with pytest.raises(Outdated):
            migrate(opened)

        with bound(opened):
            assert [tuple(row) for row in fetch("SELECT id, seconds FROM activity ORDER BY id")] == [(1, 3), (2, 7)]
