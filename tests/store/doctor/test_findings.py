"""Findings of the doctor about the database, the clock and the version of SQLite, each as a whole."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from musicsvc.clock import DAY, isoformat, parse
from musicsvc.store.doctor import Finding, database, ok, problem, warning
from tests.support import upgrades
from tests.support.damage import add_dangling_row, overwrite_middle_page

pytestmark = pytest.mark.only_on("sqlite")
NOW = parse("2026-12-01T12:00:00Z")
SET_CLOCK = "Set the clock, best by NTP: the expiry of tokens and the days of figures depend on it."
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
            execute("ALTER TABLE account DROP COLUMN avatar"),
            replaced(
                problem("schema", "schema: add column account.avatar.", "Restore a backup, or correct the schema.")
            )[:3],
            id="schema",
        ),
        pytest.param(
            lambda file: upgrades.make_older(f"sqlite:///{file}"),
            replaced(
                problem(
                    "schema",
                    "The database was written before version 0.1.0 and cannot be upgraded:"
                    " move it away, run musicsvc init, and import your files again.",
                    "See docs/upgrade.md.",
                )
            )[:3],
            id="older",
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
    years = {year: database.check_clock(parse(f"{year}-01-01")) for year in (1970, 2025, 2026, 2099, 2100)}
    assert years == {
        year: problem("clock", f"This machine's clock is in the year {year}.", SET_CLOCK) for year in (1970, 2025, 2100)
    } | {year: ok("clock", f"It is {year}-01-01T00:00:00.000000Z.") for year in (2026, 2099)}
    for version in ("3.9.9", "3.51.2", "3.51.3", "4.0.0"):
        monkeypatch.setattr(apsw, "sqlite_lib_version", lambda version=version: version)
        assert database.check_database(f"sqlite:///{file}", now=NOW)[0] == (
            ok("SQLite", f"SQLite {version} is safe to use from several processes.")
            if version in {"3.51.3", "4.0.0"}
            else warning(
                "SQLite",
                f"SQLite {version} can corrupt a database if two processes write to it at once.",
                "Run: pip install -U apsw (it brings 3.51.3 or newer)",
            )
        )
    (unreachable,) = database.check_database("postgresql://ada@127.0.0.1:1/music", now=NOW)
    assert (unreachable.check, unreachable.level) == ("database", "problem")
    assert unreachable.hint == "Check database_url, and that the PostgreSQL server runs."
