"""Checks of files: backups, leftovers."""

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from musicsvc.clock import DAY, MINUTE, Clock
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.doctor import files
from tests.support.damage import add_dangling_row, overwrite_middle_page

HOUR = 60 * MINUTE
pytestmark = pytest.mark.only_on("sqlite")


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: file.write_bytes(b""), "is empty"),
    (lambda file: file.write_bytes(file.read_bytes()[:-1]), "is cut short"),
    (lambda file: file.write_bytes(b"a note " * 1000), "is not a SQLite database"),
    (overwrite_middle_page, "is damaged"),
    (add_dangling_row, "is damaged: a row refers to a missing row"),
]


def test_the_age_of_the_last_good_backup_is_checked(file: Path) -> None:
    folder = file.parent / "backups"

    def look(now: int, every: int = 24) -> list[str]:
        found = list(files.check_backups(file, folder, every, now=now))
        assert {finding.check for finding in found} == {"backups"}
        return [finding.level for finding in found]

    now = Clock().now()
    assert look(now) == ["warning"]
    folder.mkdir()
    made = create.create(file, backup_folder.new_name(folder, now)).file
    assert (look(now), look(now, every=0)) == (["ok"], ["warning", "ok"])
    assert look(now + 30 * DAY) == ["ok"]  # for nothing has changed since
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO tag (name) VALUES ('later')")
    connection.close()
    made.rename(backup_folder.new_name(folder, now - DAY // 2))
    (entry,) = backup_folder.entries(folder)

    def around(every: int, *hours: int) -> list[str]:
        return [look(entry.at + each * HOUR + more, every)[-1] for each in hours for more in (0, 1)]

    assert around(24, 25, 48) == around(0, 49, 96) == ["ok", "warning", "warning", "problem"]
    (kept,) = folder.iterdir()
    newer = backup_folder.new_name(folder, now)
    for spoil, message in SPOILT:
        shutil.copy(kept, newer)
        spoil(newer)
        damaged, last = files.check_backups(file, folder, 24, now=now)
        assert (damaged.level, last.level) == ("warning", "ok")
        assert f"{newer} {message}" in damaged.finding
        assert str(kept) in last.finding
    assert look(now - 2 * DAY) == ["warning", "warning", "problem"]


def test_leftovers_of_interrupted_work_are_reported(file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir()
    assert [finding.level for finding in files.check_leftovers(file, folder)] == ["ok"]
    left = [
        folder / ".musicsvc-20260101T000000Z.db.partial",
        file.with_name(".musicsvc.db.restoring"),
        file.with_name(".musicsvc.db.replaced"),
        file.with_name(".init-x"),
    ]
    for path in left:
        path.touch()
    with backup_folder.draft(folder / "musicsvc-20260102T000000Z.db"):
        left[0].touch()  # which the draft has swept
        leftovers = files.check_leftovers(file, folder)
    assert [str(path) for path in left] == [finding.finding.split()[0] for finding in leftovers]
