"""The Peewee database class for PostgreSQL on psycopg 3, its units of work, and the translation of errors."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any, Generic

import peewee
import psycopg
from psycopg import conninfo
from psycopg import errors as pg

from musicsvc.errors import Failure, MissingReference, ReadOnly, Unavailable
from musicsvc.store.engine.postgres.connections import Connection, Connections
from musicsvc.store.engine.postgres.waiting import BoundedConnection
from musicsvc.store.engine.sql import T
from musicsvc.store.engine.tables import Noting, Tables, note
from musicsvc.store.engine.url import describe

# Begin each transaction together with BEGIN: a pooler like pgbouncer gives each transaction another session. Queries
# that are streamed are planned for all of their rows, not for the first ones of a large table.
TRANSACTION_SETTINGS = """
    SET LOCAL lock_timeout = {lock};
    SET LOCAL statement_timeout = {statement};
    SET LOCAL idle_in_transaction_session_timeout = 60000;
    SET LOCAL cursor_tuple_fraction = 1
"""
# Older servers do not know all of them.
WITHOUT_TIMEOUTS = """
    SELECT set_config(name, '0', {local}) FROM pg_settings
    WHERE name IN ('lock_timeout', 'statement_timeout', 'transaction_timeout', 'idle_session_timeout',
        'idle_in_transaction_session_timeout')
"""
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
LOCK_SECONDS = 5.0
CONNECT_SECONDS = 6  # of all hosts of the address together
# A connection to a machine that is gone ends after half a minute, also if nothing is sent.
TCP = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
NAME = "musicsvc"  # of connections; those of version 0.1.0 have none
ERRORS = (peewee.PeeweeException, psycopg.Error)  # Peewee does not wrap all errors of the driver
# Besides what ends a session.
FAULTS = (psycopg.OperationalError, psycopg.InterfaceError, pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege)
# Each table, with a table whose deletes change it.
TABLES = """
    SELECT t.relname, parent.relname
    FROM pg_class t
    LEFT JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype = 'f' AND c.confdeltype IN ('c', 'n', 'd')
    LEFT JOIN pg_class parent ON parent.oid = c.confrelid
    WHERE t.relkind IN ('r', 'p', 'v', 'm') AND pg_table_is_visible(t.oid)
        AND t.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
"""


def transaction_settings(lock_seconds: float = LOCK_SECONDS, statement_seconds: int = 0) -> str:
    """Return the statements that set the timeouts of a transaction. `statement_seconds`: 0 for none."""
    return TRANSACTION_SETTINGS.format(lock=round(lock_seconds * 1000), statement=statement_seconds * 1000)


@dataclass(slots=True, eq=False)
class Task(Generic[T]):
    """A queued unit of work, its future, and the limits of its waits."""

    unit: Callable[[], T]
    begin: str  # READ or WRITE
    within: float | None
    versions: bool = False  # whether to increment the version numbers of changed tables
    patient: bool = True  # it may wait for a lock on a thread for such units
    future: Future[T] = field(default_factory=Future)
    queued: float = field(default_factory=time.monotonic)
    locked_until: float | None = None  # the end of waiting for locks, on a thread for such units

    @property
    def deadline(self) -> float:
        """The time by which the unit must have ended, or begun again if it has no deadline."""
        return inf if self.within is None else self.queued + self.within

    def begin_statement(self, lock_seconds: float) -> str:
        """Return the statement that begins the transaction. Its timeouts are rounded, so that few texts exist."""
        if self.locked_until is not None:
            lock_seconds = max(0.1, round(self.locked_until - time.monotonic(), 1))
        left = 0 if self.within is None else max(1, ceil(self.deadline - time.monotonic()))
        return f"{self.begin}; {transaction_settings(lock_seconds, left)}"


class NotingCursor(Noting, psycopg.Cursor[Any]):
    """A cursor that records the text of each statement, to find the tables that a transaction reads and changes."""

    def copy(self, statement: Any, *arguments: Any, **options: Any) -> Any:
        note(statement)
        return super().copy(statement, *arguments, **options)


class NotingServerCursor(Noting, psycopg.ServerCursor[Any]):
    """A server-side cursor that records the text of each statement."""


class Adapter(peewee.Psycopg3Adapter):
    """Peewee's adapter for psycopg 3, with connections that wait for the server within limits."""

    def connect(self, db: peewee.Database, **options: Any) -> psycopg.Connection[Any]:
        return BoundedConnection.connect(db.database, **options)


class PostgresDatabase(peewee.PostgresqlDatabase):
    """Peewee's PostgreSQL database on psycopg 3. A thread has a connection between `connect` and `close`."""

    psycopg3_adapter = Adapter

    def __init__(self, url: str, budget: int = 1) -> None:
        """Set the connection options: only those that pgbouncer accepts. Raises Failure if the URL is malformed.

        `budget`: the most connections of all threads.
        """
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # it raises what it warns of as well
        url = url.replace("postgres://", "postgresql://", 1)
        try:
            given = conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise Failure("The database address cannot be read (setting database_url).") from None
        hosts = len(str(given.get("host", "")).split(","))  # psycopg applies the timeout to each
        options = {"connect_timeout": max(2, CONNECT_SECONDS // hosts), "application_name": NAME} | TCP
        defaults: dict[str, Any] = {name: value for name, value in options.items() if name not in given}
        super().__init__(url, prefer_psycopg3=True, client_encoding="UTF8", **defaults)
        self._url = url
        # Peewee opens connections one at a time. Threads must not queue for a server that does not answer.
        self._lock = nullcontext()
        self.connections = Connections(self._open, budget)
        self._thread = threading.local()
        self._tables: Tables | None = None
        self._tables_of: str | None = None

    @property
    def tables(self) -> Tables:
        """The tables of the database, kept. Before the table `table_version` exists, they are read every time."""
        if self._tables is None or not self._tables.versioned:
            self._tables = self._read_tables()
        return self._tables

    def tables_of(self, schema: str) -> Tables:
        """Return the tables, read again if the schema has another number than when they were last read."""
        if schema != self._tables_of:
            self._tables, self._tables_of = self._read_tables(), schema
        return self.tables

    def _read_tables(self) -> Tables:
        connection: Any = self.connection()
        return Tables(connection.execute(TABLES))

    def be_urgent(self) -> None:
        """Let this thread precede others when connections are scarce."""
        self._thread.urgent = True

    @property
    def _urgent(self) -> bool:
        return getattr(self._thread, "urgent", False)

    def _connect(self) -> Connection:
        return self.connections.take(urgent=self._urgent)

    def _close(self, connection: Connection) -> None:
        self.connections.give_back(connection, urgent=self._urgent)

    def discard(self) -> None:
        """Close the connection of this thread, which no thread uses again."""
        if not self.is_closed():
            connection: Any = self.connection()
            connection.close()
            self.close()

    def _open(self) -> Connection:
        """Open a connection. Raises Failure if the database cannot store every text.

        Statements are prepared, which halves the time of many, unless a pooler gives each transaction another session.
        """
        connection: Connection = super()._connect()  # type: ignore[misc]  # missing in the stubs
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Connection) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            hint = "Create one with: createdb --encoding=UTF8 --template=template0 NAME"
            raise Failure(f"{describe(self._url)} has the encoding {encoding}, not UTF8. {hint}")
        if connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,):  # a pooler
            connection.prepare_threshold = None
        # With it off, the driver would store other bytes.
        if connection.info.parameter_status("standard_conforming_strings") != "on":
            connection.execute("SET standard_conforming_strings = on")
        connection.cursor_factory = NotingCursor
        connection.server_cursor_factory = NotingServerCursor

    def begin(self, *_options: Any) -> None:
        """Begin a transaction of `atomic`, with the settings of all transactions. Migrations note their time in UTC."""
        self.execute_sql(f"{WRITE}; {transaction_settings()}; SET LOCAL timezone = 'UTC'")

    def close_all(self) -> None:
        """Close the connection of this thread and all that no thread uses."""
        self.close()
        self.connections.close()


def driver_error(error: BaseException | None) -> psycopg.Error | None:
    """Return `error` if it is a psycopg error, or the psycopg error that Peewee wrapped in it, else None."""
    if isinstance(error, psycopg.Error):
        return error
    inner = getattr(error, "orig", None)
    return inner if isinstance(inner, psycopg.Error) else None


def translate(error: BaseException) -> BaseException:
    """Return Unavailable for a server fault, MissingReference or Peewee's IntegrityError for a violated constraint.

    Return all other errors unchanged.
    """
    inner = driver_error(error)
    if isinstance(inner, pg.ForeignKeyViolation):
        return MissingReference()
    if inner is not None and (isinstance(inner, FAULTS) or inner.diag.severity_nonlocalized == "FATAL"):
        here = f"The database is busy or cannot be used: {reason(inner)}."
        if isinstance(inner, pg.InsufficientPrivilege):
            here += " The role of database_url must own the database and its tables: ALTER … OWNER TO …."
        refused = isinstance(inner, pg.ReadOnlySqlTransaction | pg.DiskFull)
        return ReadOnly(here) if refused else Unavailable(here=here)
    if isinstance(error, psycopg.IntegrityError):
        return peewee.IntegrityError(error, str(error))
    return error


def refused(url: str, error: BaseException) -> Unavailable:
    """Return the failure for an error while a connection to the database is made."""
    return Unavailable(here=f"{describe(url)} does not accept connections: {reason(error)}.")


def reason(error: BaseException) -> str:
    """Return the error message in one line, without PostgreSQL's DETAIL section, questions, and parts of statements."""
    told = str(error).partition("DETAIL:")[0].partition("\nLINE ")[0]
    return " ".join(line.strip() for line in told.splitlines() if not line.endswith("?")).strip().rstrip(".")
