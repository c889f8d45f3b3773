"""The daily work of a server leaves no file of the data folder open."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from musicsvc.store.activity.log_file import LogFile
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.engine.sqlite.reserved_space import ReservedSpace
from musicsvc.store.rate_limits.sqlite import MachineHitCounter
from tests.conftest import NOW
from tests.support.backed_up import add, restore
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
    counter = MachineHitCounter(tmp_path / "limits.db", lambda: 0)
    counter.open()
    counter.close()

    assert open_files(tmp_path) == []
