"""Every finding of the doctor as a whole: the name of the check, the level, the text and the remedy."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import apsw
import pytest

from musicsvc.clock import DAY, Clock, isoformat, parse
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.doctor import database, files
from musicsvc.store.doctor.finding import ok, problem, warning
from musicsvc.store.engine.sqlite import reserved_space
from tests.support.damage import add_dangling_row, overwrite_middle_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from musicsvc.store.doctor.finding import Finding

pytestmark = pytest.mark.only_on("sqlite")
NOW = parse("2026-12-01T12:00:00Z")
HOUR = DAY // 24
SET_CLOCK = "Set the clock, best by NTP: the expiry of tokens and the days of statistics depend on it."
RESTORE = "Restore a backup (musicsvc db restore FILE), or move the file away and run: musicsvc init"
GOOD = [
    ok("pragmas", "WAL mode, synchronous FULL, foreign keys enforced."),
    ok("integrity", "The database is undamaged."),
    ok("schema", "The schema is up to date."),
    ok("counts", "The stored lengths of lists are correct."),
]
ACCOUNTS = "INSERT INTO account (id, email, email_key, display_name, created_at) VALUES"


def execute(*statements: str) -> Callable[[Path], object]:
    """Return a function that executes SQL in a database file."""

    def spoil(file: Path) -> None:
        connection = apsw.Connection(str(file))
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return spoil


def replaced(*findings: Finding) -> list[Finding]:
    """Return GOOD with these findings in place of those of the same check."""
    wrong = {each.check: each for each in findings}
    return [wrong.pop(each.check, each) for each in GOOD] + list(wrong.values())


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        pytest.param(lambda _: None, GOOD, id="nothing"),
        pytest.param(
            lambda file: file.unlink(),
            [problem("database", "There is no database at FILE.", "Run: musicsvc init")],
            id="missing",
        ),
        pytest.param(
            lambda file: file.write_bytes(b""),
            [problem("database", "The database FILE is empty (0 bytes).", RESTORE)],
            id="empty",
        ),
        pytest.param(
            overwrite_middle_page,
            [problem("database", "The database FILE is damaged.", RESTORE)],
            id="damaged",
        ),
        pytest.param(
            add_dangling_row,
            replaced(
                problem(
                    "integrity",
                    "foreign keys: row 1 of track_genre refers to a missing row of genre;"
                    " foreign keys: row 1 of track_genre refers to a missing row of track.",
                    "Stop the server and restore a backup: musicsvc db restore FILE",
                )
            ),
            id="dangling",
        ),
        pytest.param(
            execute("PRAGMA journal_mode = DELETE"),
            replaced(
                warning(
                    "pragmas",
                    "The database has unexpected settings: journal_mode = delete.",
                    "Start a server once: its first write sets the WAL mode.",
                )
            ),
            id="journal",
        ),
        pytest.param(
            execute("ALTER TABLE tag ADD COLUMN more TEXT"),
            replaced(problem("schema", "schema: drop column tag.more.", "Restore a backup, or correct the schema."))[
                :3
            ],
            id="schema",
        ),
        pytest.param(
            execute("INSERT INTO list_block (list, owner, first_key, first_id, slot, size) VALUES (4, 0, 0, 0, 0, 3)"),
            replaced(
                problem(
                    "counts",
                    "counts: a block of the playlists of account 0 has 0 rows, not 3.",
                    "Run: musicsvc db recount",
                )
            ),
            id="counts",
        ),
        pytest.param(
            execute(
                f"{ACCOUNTS} (4, 'eva@exämple.test', 'eva@xn--exmple-cua.test', 'Eva', 1),"
                " (6, 'eva@xn--exmple-cua.test', NULL, 'Eva', 3)"
            ),
            replaced(
                warning(
                    "accounts",
                    "Accounts 4 (eva@exämple.test) and 6 (eva@xn--exmple-cua.test) share a mailbox."
                    " Account 6 is found only by its e-mail exactly as written.",
                    "Suspend the account that is no longer used:"
                    " musicsvc user suspend 'eva@exämple.test', or: musicsvc user suspend eva@xn--exmple-cua.test",
                )
            ),
            id="mailboxes",
        ),
        pytest.param(
            execute(f"{ACCOUNTS} (4, 'eva@label.test', 'eva@label.test', 'Eva', {NOW + DAY})"),
            replaced(
                problem(
                    "clock",
                    f"The newest row is dated {isoformat(NOW + DAY)}, after the time of this machine's clock.",
                    SET_CLOCK,
                )
            ),
            id="clock",
        ),
    ],
)
def test_findings_about_the_database(file: Path, spoil: Callable[[Path], object], expected: list[Finding]) -> None:
    spoil(file)
    version, *found = database.check_database(f"sqlite:///{file}", now=NOW)
    safe = f"SQLite {apsw.sqlite_lib_version()} is safe to use from several processes."
    assert version == ok("SQLite", safe)
    assert [(each.check, each.level, each.finding.replace(str(file), "FILE"), each.hint) for each in found] == [
        (each.check, each.level, each.finding, each.hint) for each in expected
    ]


def test_findings_about_clock_and_version(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    assert [database.check_clock(parse(at)) for at in ("2026-01-01", "2100-01-01")] == [
        ok("clock", "It is 2026-01-01T00:00:00.000000Z."),
        problem("clock", "This machine's clock is in the year 2100.", SET_CLOCK),
    ]
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    assert database.check_database(f"sqlite:///{file}", now=NOW)[0] == warning(
        "SQLite",
        "SQLite 3.51.2 can corrupt a database if two processes write to it at once.",
        "Run: pip install -U apsw (it brings 3.51.3 or newer)",
    )
    (unreachable,) = database.check_database("postgresql://ada@127.0.0.1:1/music", now=NOW)
    assert (unreachable.check, unreachable.level) == ("database", "problem")
    assert unreachable.hint == "Check database_url, and that the PostgreSQL server runs."


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
    assert files.check_writable(file) == files.check_writable(file.with_name("missing")) == []
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not (path == file and mode & os.W_OK) and access(path, mode))
    (denied,) = files.check_writable(file)
    assert (denied.check, denied.level, denied.hint) == ("permissions", "problem", f"Run: chmod u+rw {file}")
    file.unlink()
    assert files.check_writable(file) == []


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
    assert found(now, every=0) == [unscheduled, warning("backups", none, run)]
    place = create.create(file, backup_folder.new_name(folder, now - 7 * HOUR)).file
    (entry,) = backup_folder.entries(folder)
    age = "The newest undamaged backup is {} hours old (" + str(place) + ")"
    changed, why = (
        f"{age}, and the database has changed since.",
        f"{run}, and find out from the server's log why it created none",
    )
    assert [found(entry.at + hours * HOUR) for hours in (25, 26, 49)] == [
        [ok("backups", f"{age.format(25)}.")],
        [warning("backups", changed.format(26), why)],
        [problem("backups", changed.format(49), why)],
    ]
    assert found(entry.at + HOUR, every=0) == [unscheduled, ok("backups", f"{age.format(1)}.")]
    future = warning(
        "backups", f"The backup {place} is dated in the future.", "Delete it, or correct the time in its name."
    )
    lacking = problem("backups", none, f"{run} (a server creates one every 24 hours)")
    assert found(entry.at - backup_folder.AHEAD - 1) == [future, lacking]
    assert found(entry.at - backup_folder.AHEAD) == [ok("backups", f"{age.format('-0')}.")]
    place.write_bytes(b"")
    empty = warning("backups", f"The backup {place} is empty (0 bytes).", "Delete it.")
    assert found(now) == [empty, lacking]
    file.unlink()
    assert (found(now), found(now, every=0)) == ([], [unscheduled])


def test_findings_about_leftovers(file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir()
    assert files.check_leftovers(file, folder) == [ok("leftovers", "There are no files of interrupted commands.")]
    backup, restore, init = (
        folder / ".musicsvc-20260101T000000Z.db.partial",
        file.with_name(".musicsvc.db.restoring"),
        file.with_name(".init-x"),
    )
    for path in (backup, restore, init):
        path.touch()
    assert files.check_leftovers(file, folder) == [
        warning("leftovers", f"{backup} was left by an interrupted backup.", "The next backup removes it."),
        warning("leftovers", f"{restore} was left by an interrupted restore.", "The next restore cleans it up."),
        warning("leftovers", f"{init} was left by an interrupted musicsvc init.", "Delete it."),
    ]
