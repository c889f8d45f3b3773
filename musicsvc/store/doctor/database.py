"""Checks of `musicsvc doctor` on the database: access, schema, integrity, settings for durability, and clocks."""

from collections.abc import Iterator
from typing import Any

import apsw

from musicsvc.clock import MINUTE, SECOND, isoformat, to_datetime
from musicsvc.errors import Failure
from musicsvc.store import models
from musicsvc.store.doctor import Finding, failed, ok, problem, warning
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of
from musicsvc.store.opening import open_unchecked
from musicsvc.store.schema import schema
from musicsvc.store.schema.history import unknown

SAFE_SQLITE = (3, 51, 3)  # older versions may corrupt a WAL that two connections write
PRAGMAS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
SAFEGUARDS = ("fsync", "full_page_writes", "synchronous_commit")
FIRST_YEAR, LAST_YEAR = 2026, 2099
ROW_AHEAD = 5 * MINUTE
SERVER_CLOCK_DRIFT = 5 * SECOND
SET_CLOCK = "Set the clock, best by NTP: the expiry of tokens and the days of figures depend on it."
MAX_LINES = 3
PROBE_SECONDS = 5.0


def check_database(url: str, *, now: int, beside: Store | None = None) -> list[Finding]:
    """Check the database, which may be missing, damaged or of another schema version.

    `beside`: the store that this process has open. On PostgreSQL the checks use its connections.
    """
    found = [_sqlite_version()] if path_of(url) else []
    try:
        with _opened(url, beside) as store:
            found += _check_open(store, now)
    except Failure as failure:
        found.append(failed("database", failure, "Check database_url, and that the PostgreSQL server runs."))
    return found


def _opened(url: str, beside: Store | None) -> Store:
    return open_unchecked(url) if beside is None or path_of(url) else beside.beside()


def check_replica(url: str, read_url: str, beside: Store | None = None) -> Finding:
    """Check that figures are read from the read replica at `read_url`. `beside`: as in `check_database`."""
    from musicsvc.store.engine.postgres import standby  # noqa: PLC0415 - loads the driver only if used

    with _opened(url, beside) as store:
        problem = standby.problem(read_url, store, schema.fault)
    if problem is None:
        return ok("read replica", "The read replica has what the primary has.")
    hint = "Check database_read_url and the replication. Until then figures and exports are read from the primary."
    return warning("read replica", problem, hint)


def _check_open(store: Store, now: int) -> Iterator[Finding]:
    yield from _check_postgres(store, now) if path_of(store.url) is None else _check_sqlite(store)
    fault = store.read(schema.fault).result()
    if fault:
        yield failed("schema", Failure(fault), "See docs/upgrade.md.")
        return
    if path_of(store.url) is None:
        yield from _check_writing(store)
    differences = store.read(schema.differences).result()
    if differences:
        yield problem("schema", _listed(differences), "Restore a backup, or correct the schema.")
    else:
        newer = store.read(lambda: unknown(schema.applied())).result()
        finding = f"The schema is of a newer version ({newer[-1]}), and this one may use it." if newer else None
        yield ok("schema", finding or "The schema is up to date.")
        counts = store.read(list_blocks.differences).result()
        if counts:
            yield problem("counts", _listed(counts), "Run: musicsvc db recount")
        else:
            yield ok("counts", "The stored lengths of lists are correct.")
    last = store.read(newest_row).result()
    if last is not None and last > now + ROW_AHEAD:
        finding = f"The newest row is dated {isoformat(last)}, after the time of this machine's clock."
        yield problem("clock", finding, SET_CLOCK)


def _check_writing(store: Store) -> Iterator[Finding]:
    """Report that PostgreSQL refuses to write. The disk of SQLite has a check of its own."""
    try:
        store.probe(lambda: None, within=PROBE_SECONDS).result()
    except Failure as failure:
        yield failed("database", failure, "Make room on the disk of PostgreSQL, or name the primary in database_url.")


def _sqlite_version() -> Finding:
    version = apsw.sqlite_lib_version()
    numbers = tuple(int(part) for part in version.split("."))
    if numbers < SAFE_SQLITE:
        return warning(
            "SQLite",
            f"SQLite {version} can corrupt a database if two processes write to it at once.",
            f"Run: pip install -U apsw (it brings {'.'.join(map(str, SAFE_SQLITE))} or newer)",
        )
    return ok("SQLite", f"SQLite {version} is safe to use from several processes.")


def _check_sqlite(store: Store) -> Iterator[Finding]:
    found = store.read(_pragmas).result()
    wrong = {name: value for name, value in found.items() if value != PRAGMAS[name]}
    if wrong:
        listed = ", ".join(f"{name} = {value}" for name, value in wrong.items())
        hint = "Start a server once: its first write sets the WAL mode."
        yield warning("pragmas", f"The database has unexpected settings: {listed}.", hint)
    else:
        yield ok("pragmas", "WAL mode, synchronous FULL, foreign keys enforced.")
    damage = store.read(schema.damage).result()
    if damage:
        yield problem("integrity", _listed(damage), "Stop the server and restore a backup: musicsvc db restore FILE")
    else:
        yield ok("integrity", "The database is undamaged.")


def _pragmas() -> dict[str, object]:
    database: Any = current()
    database.get_tables()  # the connection knows its mode only after reading the file
    return {name: database.pragma(name) for name in PRAGMAS}


def _check_postgres(store: Store, now: int) -> Iterator[Finding]:
    off, server_time = store.read(_postgres_settings).result()
    if off:
        yield problem("pragmas", f"PostgreSQL runs with {', '.join(off)} off.", "Turn this on in postgresql.conf.")
    else:
        yield ok("pragmas", "PostgreSQL writes durably (fsync, full_page_writes, synchronous_commit).")
    if abs(server_time - now) > SERVER_CLOCK_DRIFT:
        finding = f"PostgreSQL's clock is {abs(server_time - now) / SECOND:,.0f} s off from this machine's."
        yield warning("clock", finding, SET_CLOCK)


def _postgres_settings() -> tuple[list[str], int]:
    """Return the names of the durability settings that are off, and PostgreSQL's time. Call in a transaction."""
    off = [name for name in SAFEGUARDS if current().execute_sql(f"SHOW {name}").fetchone()[0] == "off"]
    server_time = current().execute_sql("SELECT extract(epoch FROM clock_timestamp()) * 1000000").fetchone()[0]
    return off, int(server_time)


def _listed(lines: list[str]) -> str:
    """Join the first three lines by semicolons. If there are more lines, add their number, such as `and 2 more`."""
    more = f"; and {len(lines) - MAX_LINES} more" if len(lines) > MAX_LINES else ""
    return " ".join(f"{'; '.join(lines[:MAX_LINES])}{more}.".split())


def check_clock(now: int) -> Finding:
    """Check that the machine's clock shows a plausible year."""
    year = to_datetime(now).year
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return problem("clock", f"This machine's clock is in the year {year}.", SET_CLOCK)
    return ok("clock", f"It is {isoformat(now)}.")


def newest_row() -> int | None:
    """Return the creation time (microseconds) of the newest row of all tables, or None. Call in a transaction."""
    moments: list[int] = []
    for table in models.tables():
        fields = table._meta.fields  # noqa: SLF001 - Peewee's documented access to a table's names
        if "created_at" in fields and "id" in fields:
            last = table.select(fields["created_at"]).order_by(fields["id"].desc()).limit(1).tuples().first()
            moments += last or ()
    return max(moments, default=None)
