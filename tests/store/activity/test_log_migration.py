"""The activity log is created by one process while others try to read it."""

from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.activity.log_file import LogFile
from musicsvc.store.activity.log_store import migrate
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.sqlite.database import SqliteDatabase

pytestmark = pytest.mark.only_on("sqlite")


class ObservedDatabase(SqliteDatabase):
    """A database that asks a reader after each statement whether there is a log."""

    def __init__(self, path: Path, reader: LogFile) -> None:
        super().__init__(path, {"journal_mode": "WAL"})
        self.reader, self.seen = reader, list[bool]()

    def execute_sql(self, *args: Any, **options: Any) -> Any:
        result = super().execute_sql(*args, **options)
        self.seen.append(self.reader.open_existing())
        return result


def test_a_reader_sees_no_log_or_a_whole_one_while_a_server_creates_it(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    files.create(path, files.LOG_ID)
    with LogFile(path) as reader:
        database = ObservedDatabase(path, reader)
        applied = migrate(database)
        database.close_all()
        assert len(applied) == 3
        assert database.seen == [False] * len(database.seen)
        assert len(database.seen) > 2 * len(applied)
        assert reader.open_existing()
