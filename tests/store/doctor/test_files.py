"""Checks of files: permissions, disks, reserved space, backups, leftovers."""

import os
import shutil
from pathlib import Path

import apsw
import pytest

from musicsvc.clock import DAY, MINUTE, Clock
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.doctor import Finding, files, ok, problem, warning
from musicsvc.store.engine.sqlite import reserved_space
from tests.support.damage import add_dangling_row

HOUR = 60 * MINUTE
pytestmark = pytest.mark.only_on("sqlite")


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
    shutil.copy(kept, newer)
    add_dangling_row(newer)
    damaged, last = files.check_backups(file, folder, 24, now=now)
    assert (damaged.level, last.level) == ("warning", "ok")
    assert f"{newer} is damaged: a row refers to a missing row" in damaged.finding
    assert str(kept) in last.finding
    assert look(now - 2 * DAY) == ["warning", "warning", "problem"]


def test_findings_about_permissions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, folder = file.with_name("key.pem"), file.with_name("open")
    secret.touch(mode=0o600)
    folder.mkdir(mode=0o700)

    def found(mode: int, folder_mode: int) -> list[Finding]:
        secret.chmod(mode)
        folder.chmod(folder_mode)
        return files.check_permissions([secret, file.with_name("missing")], [folder, file.with_name("none")])

    everyone = problem("permissions", f"Every user of this machine can open {secret}.", f"Run: chmod 600 {secret}")
    group = warning("permissions", f"A group can open {secret}.", f"Run: chmod 600 {secret}")
    listed = warning("permissions", f"Other users can list {folder}.", f"Run: chmod 700 {folder}")
    assert found(0o700, 0o700) == [ok("permissions", "Only their owner can open the private files.")]
    assert [found(mode, 0o700) for mode in (0o601, 0o602, 0o604, 0o660)] == [[everyone]] * 3 + [[group]]
    assert [found(0o600, mode) for mode in (0o701, 0o704, 0o710, 0o720)] == [[listed]] * 4
    assert found(0o644, 0o755) == [everyone, listed]
    assert files.check_writable(file, folder) == files.check_writable(file.with_name("missing"), folder) == []
    access = os.access
    locked = {file, folder}
    monkeypatch.setattr(os, "access", lambda path, mode: not (path in locked and mode & os.W_OK) and access(path, mode))
    denied = files.check_writable(file, folder)
    assert [(each.check, each.level, each.hint) for each in denied] == [
        ("permissions", "problem", f"Run: chmod u+rw {file}"),
        ("permissions", "problem", f"Run: chmod u+rwx {folder}"),
    ]
    file.unlink()
    assert files.check_writable(file, folder) == []


def test_findings_about_disks(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = 3_000_000
    for old in file.parent.glob(f"{file.name}*"):
        old.unlink()
    file.write_bytes(bytes(content - 1))
    file.with_name(f"{file.name}-wal").write_bytes(bytes(1))
    file.with_name(f"{file.name}.d").mkdir()
    usage = shutil.disk_usage(tmp_path)

    def found(free: int) -> list[Finding]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
        return files.check_disks(file, file.parent / "backups" / "below", (tmp_path,))

    place = f"MB are free on the disk of {file.parent}"
    full = "Free some space: on a full disk, all writes fail."
    assert [found(free) for free in (63_999_999, 64_000_000, 66_999_999, 67_000_000, 1_234_000_000)] == [
        [problem("disk", f"Only 64 {place}.", full)],
        [warning("disk", f"64 {place}, and a backup takes 3 MB.", "Free some space.")],
        [warning("disk", f"67 {place}, and a backup takes 3 MB.", "Free some space.")],
        [ok("disk", f"67 {place}.")],
        [ok("disk", f"1,234 {place}.")],
    ]
    devices = {file.parent: 1, tmp_path: 2}
    stat = type(file).stat
    monkeypatch.setattr(
        type(file),
        "stat",
        lambda path, **more: os.stat_result([*stat(path, **more)[:2], devices.get(path, 3), *stat(path, **more)[3:10]]),
    )
    assert [each.finding.split()[-1] for each in found(1_234_000_000)] == [f"{file.parent}.", f"{tmp_path}."]


def test_findings_about_reserved_space(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = file.with_name("ballast")
    usage = shutil.disk_usage(file.parent)
    size = reserved_space.SIZE

    def found(reserved: int, free: int) -> list[Finding]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
        place.write_bytes(bytes(reserved))
        return files.check_reserved_space(file)

    low = f"{place} reserves 1.0 of 4.2 MB of disk space for revoking tokens."
    assert found(size, 0) == [ok("ballast", "Disk space is reserved, so that tokens can be revoked on a full disk.")]
    assert found(1_000_000, 10**12) == [warning("ballast", low, "A running server reserves the rest.")]
    assert found(1_000_000, 0) == [
        warning("ballast", low, "Revoking tokens may fail on a full disk. Free another 15.8 MB on this disk.")
    ]
    place.unlink()
    (missing,) = files.check_reserved_space(file)
    assert missing.finding == f"{place} reserves 0.0 of 4.2 MB of disk space for revoking tokens."
    file.unlink()
    assert files.check_reserved_space(file) == []


def test_findings_about_backups(file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir()
    now = Clock().now()

    def found(at: int, every: int = 24) -> list[Finding]:
        return list(files.check_backups(file, folder, every, now=at))

    none = f"There is no undamaged backup in {folder}."
    unscheduled = warning(
        "backups", "The server creates no backups (backups.every_hours = 0).", "Run musicsvc db backup every day."
    )
    run = "Run: musicsvc db backup"
    assert found(now) == [warning("backups", none, f"{run} (a server creates one every 24 hours)")]
    assert found(now, every=1) == [warning("backups", none, f"{run} (a server creates one every hour)")]
    assert found(now, every=0) == [unscheduled, warning("backups", none, run)]
    place = create.create(file, backup_folder.new_name(folder, now - 7 * HOUR)).file
    (entry,) = backup_folder.entries(folder)
    age = "The newest undamaged backup is {} old (" + str(place) + ")"
    changed, why = (
        f"{age}, and the database has changed since.",
        f"{run}, and find out from the server's log why it created none",
    )
    assert [found(entry.at + hours * HOUR) for hours in (25, 26, 49)] == [
        [ok("backups", f"{age.format('25 hours')}.")],
        [warning("backups", changed.format("26 hours"), why)],
        [problem("backups", changed.format("49 hours"), why)],
    ]
    assert found(entry.at + HOUR, every=0) == [unscheduled, ok("backups", f"{age.format('1 hour')}.")]
    future = warning(
        "backups", f"The backup {place} is dated in the future.", "Delete it, or correct the time in its name."
    )
    lacking = problem("backups", none, f"{run} (a server creates one every 24 hours)")
    assert found(entry.at - backup_folder.AHEAD - 1) == [future, lacking]
    assert found(entry.at - backup_folder.AHEAD) == [ok("backups", f"{age.format('0 hours')}.")]
    place.write_bytes(b"")
    empty = warning("backups", f"The backup {place} is empty (0 bytes).", "Delete it.")
    assert found(now) == [empty, lacking]
    file.unlink()
    assert (found(now), found(now, every=0)) == ([], [unscheduled])


def test_findings_about_leftovers(file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir()
    assert files.check_leftovers(file, folder) == [ok("leftovers", "There are no files of interrupted commands.")]
    backup, restoring, replaced, init = left = (
        folder / ".musicsvc-20260101T000000Z.db.partial",
        file.with_name(".musicsvc.db.restoring"),
        file.with_name(".musicsvc.db.replaced"),
        file.with_name(".init-x"),
    )
    for path in left:
        path.touch()
    with backup_folder.draft(folder / "musicsvc-20260102T000000Z.db"):
        backup.touch()  # which the draft has swept
        found = files.check_leftovers(file, folder)
    assert found == [
        warning("leftovers", f"{backup} was left by an interrupted backup.", "The next backup removes it."),
        warning("leftovers", f"{restoring} was left by an interrupted restore.", "The next restore cleans it up."),
        warning("leftovers", f"{replaced} was left by an interrupted restore.", "The next restore cleans it up."),
        warning("leftovers", f"{init} was left by an interrupted musicsvc init.", "Delete it."),
    ]
