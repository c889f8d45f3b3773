"""What `doctor` finds about a database: whether it can be used, is whole, and keeps what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import apsw

from musicsvc.clock import MINUTE, SECOND, isoformat, to_datetime
from musicsvc.errors import Failure
from musicsvc.store import models
from musicsvc.store.accounts import mailboxes
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.url import path_of
from musicsvc.store.opening import open_unchecked
from musicsvc.store.schema import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.store.engine.store import Store

Level = Literal["ok", "warning", "problem"]
SOUND_SQLITE = (3, 51, 3)  # before it two connections at once could corrupt a WAL
WANTED = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
SAFEGUARDS = ("fsync", "full_page_writes", "synchronous_commit")
FIRST_YEAR, LAST_YEAR = 2026, 2099
APART = 5 * MINUTE
CLOCKS_APART = 5 * SECOND
SET_CLOCK = "Set the clock, best by NTP: tokens and windows of insights depend on it."
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it stands in one sentence, and the way out where it is not well."""

    check: str
    level: Level
    finding: str
    way_out: str = ""


def ok(check: str, finding: str) -> Finding:
    """All is well."""
    return Finding(check, "ok", finding)


def warning(check: str, finding: str, way_out: str) -> Finding:
    """Somebody should know."""
    return Finding(check, "warning", finding, way_out)


def problem(check: str, finding: str, way_out: str) -> Finding:
    """Something is wrong."""
    return Finding(check, "problem", finding, way_out)


def failed(check: str, failure: Failure, otherwise: str = "Look at its permissions, and at who runs this.") -> Finding:
    """What a failure says: the fault is its first sentence, the way out the rest, or `otherwise`."""
    fault, _, way_out = failure.here.partition(". ")
    return problem(check, fault.rstrip(".") + ".", way_out or otherwise)


def of_database(url: str, *, now: int) -> list[Finding]:
    """How the database stands; also where it is missing, damaged or of another schema."""
    found = [_sqlite_version()] if path_of(url) else []
    try:
        with open_unchecked(url) as store:
            found += _of_open(store, now)
    except Failure as failure:
        found.append(failed("database", failure, "Look at database_url, and at whether its server runs."))
    return found


def _of_open(store: Store, now: int) -> Iterator[Finding]:
    yield from _of_postgres(store, now) if path_of(store.url) is None else _of_sqlite(store)
    fault = store.read(schema.fault).result()
    if fault:
        yield failed("schema", Failure(fault))
        return
    differences = store.read(schema.differences).result()
    if differences:
        yield problem("schema", _listed(differences), "Restore a backup, or put the schema right.")
    else:
        yield ok("schema", "The schema is the newest.")
        for pair in store.read(mailboxes.shared).result():
            yield warning("accounts", pair.finding, pair.hint)
    last = store.read(newest).result()
    if last is not None and last > now + APART:
        finding = f"The newest row is of {isoformat(last)}, which this machine's clock has not reached."
        yield problem("clock", finding, SET_CLOCK)


def _sqlite_version() -> Finding:
    version = apsw.sqlite_lib_version()
    numbers = tuple(int(part) for part in version.split("."))
    if numbers < SOUND_SQLITE:
        return warning(
            "SQLite",
            f"SQLite {version} can corrupt a database that two processes write at once.",
            f"Run: pip install -U apsw (it brings {'.'.join(map(str, SOUND_SQLITE))} or newer)",
        )
    return ok("SQLite", f"SQLite {version} is sound.")


def _of_sqlite(store: Store) -> Iterator[Finding]:
    found = store.read(_pragmas).result()
    wrong = {name: value for name, value in found.items() if value != WANTED[name]}
    if wrong:
        told = ", ".join(f"{name} = {value}" for name, value in wrong.items())
        way_out = "Start a server once: its first write sets the WAL mode."
        yield warning("pragmas", f"The database is open with {told}.", way_out)
    else:
        yield ok("pragmas", "WAL mode, synchronous FULL, foreign keys enforced.")
    damage = store.read(schema.damage).result()
    if damage:
        yield problem("integrity", _listed(damage), "Stop the server and restore a backup: musicsvc db restore FILE")
    else:
        yield ok("integrity", "The database is whole.")


def _pragmas() -> dict[str, object]:
    current().get_tables()  # only a look into the file tells a connection which mode that is in
    return {name: current().execute_sql(f"PRAGMA {name}").fetchone()[0] for name in WANTED}


def _of_postgres(store: Store, now: int) -> Iterator[Finding]:
    off, there = store.read(_postgres_settings).result()
    if off:
        yield problem("pragmas", f"PostgreSQL runs with {', '.join(off)} off.", "Turn it on in postgresql.conf.")
    else:
        yield ok("pragmas", "PostgreSQL keeps what it is given (fsync, full_page_writes, synchronous_commit).")
    if abs(there - now) > CLOCKS_APART:
        finding = f"PostgreSQL's clock is {abs(there - now) / SECOND:,.0f} s away from this machine's."
        yield warning("clock", finding, SET_CLOCK)


def _postgres_settings() -> tuple[list[str], int]:
    """Which of its safeguards are off, and what time it is there; inside a unit."""
    off = [name for name in SAFEGUARDS if current().execute_sql(f"SHOW {name}").fetchone()[0] == "off"]
    there = current().execute_sql("SELECT extract(epoch FROM clock_timestamp()) * 1000000").fetchone()[0]
    return off, int(there)


def _listed(lines: list[str]) -> str:
    """A few of the lines as one sentence."""
    more = f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return " ".join(f"{'; '.join(lines[:SHOWN])}{more}.".split())


def of_clock(now: int) -> Finding:
    """Whether the clock can be right at all."""
    year = to_datetime(now).year
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return problem("clock", f"This machine's clock is in the year {year}.", SET_CLOCK)
    return ok("clock", f"It is {isoformat(now)}.")


def newest() -> int | None:
    """The latest moment at which a row was made; inside a unit."""
    moments: list[int] = []
    for table in models.tables():
        fields = table._meta.fields  # noqa: SLF001 - Peewee's way to a table's names
        if "created_at" in fields and "id" in fields:
            last = table.select(fields["created_at"]).order_by(fields["id"].desc()).limit(1).tuples().first()
            moments += last or ()
    return max(moments, default=None)
