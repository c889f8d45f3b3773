"""A PostgreSQL database that is copied or compared. Its activity log is one of its tables."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from musicsvc.errors import Failure, MissingReference, Unavailable
from musicsvc.store.copying.databases import CopiedDatabase
from musicsvc.store.copying.tables import CopiedTable, tables
from musicsvc.store.engine.postgres import database as engine
from musicsvc.store.engine.postgres.database import WITHOUT_TIMEOUTS, PostgresDatabase, reason, translate
from musicsvc.store.engine.sql import bound, fetch, run

# A connection may wait long while the other database works. It ends soon after its process was killed.
PATIENT = f"{WITHOUT_TIMEOUTS.format(local=False)}; SET client_connection_check_interval = 500"
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND usesysid IS NOT NULL AND leader_pid IS NULL AND pid <> pg_backend_pid()
"""
WRITTEN = "SELECT sum(number) FROM table_version"  # grows with each write
PATIENCE_SECONDS, PAUSE_SECONDS = 3.0, 0.1  # for the connections of a process that has just ended
CONSTRAINTS = """
    SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(conname),
        'ALTER TABLE ' || conrelid::regclass || ' ADD CONSTRAINT ' || quote_ident(conname) || ' '
            || pg_get_constraintdef(oid)
    FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
        AND conrelid IN (SELECT oid FROM pg_class WHERE relname = ANY (?)) ORDER BY oid
"""
TRIGGERS = """
    SELECT DISTINCT 'ALTER TABLE ' || tgrelid::regclass || ' DISABLE TRIGGER USER',
        'ALTER TABLE ' || tgrelid::regclass || ' ENABLE TRIGGER USER'
    FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
    WHERE NOT tgisinternal AND c.relnamespace = current_schema()::regnamespace AND relname = ANY (?)
"""
SEQUENCE = "pg_get_serial_sequence('{name}', 'id')"
LAST_ID = "SELECT greatest(coalesce(pg_sequence_last_value({sequence}::regclass), 0), (SELECT max(id) FROM {name}))"
SET_LAST_ID = "SELECT setval({sequence}, greatest(?, 1), ? > 0)"


class CopiedPostgresDatabase(CopiedDatabase):
    errors = engine.ERRORS

    def __init__(self, url: str) -> None:
        """Connect. Raises Failure if the server does not accept it."""
        super().__init__(url)
        self._copied: object = None  # what had been written when the snapshot began
        self.main = self.log = self._database = PostgresDatabase(url)
        with self.translated():
            self._database.execute_sql(PATIENT)
        self.open_log(self._database)

    def begin(self) -> None:
        with self.translated():
            self._database.execute_sql(SNAPSHOT)
            self._copied = self._database.execute_sql(WRITTEN).fetchone()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (company := self.has_company()) and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        yield not company

    def has_company(self) -> bool:
        with self.translated(), bound(self._database):
            return bool(fetch(OTHERS)[0][0]) or (self._copied is not None and self._written() != self._copied)

    def _written(self) -> object:
        """Return how much has been written by now, also by those that are gone: the snapshot does not show it."""
        database = PostgresDatabase(self.url)
        try:
            return database.execute_sql(WRITTEN).fetchone()
        finally:
            database.close_all()

    def loosen(self) -> str:
        ours = [table.name for table in tables()]  # other programs may have tables beside them
        pairs = [*fetch(CONSTRAINTS, ours), *fetch(TRIGGERS, ours)]
        for suspend, _ in pairs:
            run(suspend)
        return ";\n".join(restore for _, restore in pairs)

    def tighten(self, statements: str) -> None:
        run(statements)

    def next_id(self, table: CopiedTable) -> int:
        sequence = SEQUENCE.format(name=table.name)
        return int(fetch(LAST_ID.format(sequence=sequence, name=table.name))[0][0])

    def set_next_id(self, table: CopiedTable, last: int) -> None:
        fetch(SET_LAST_ID.format(sequence=SEQUENCE.format(name=table.name)), last, last)

    def tidy(self) -> None:
        """Let queries know the sizes of the tables, and index-only scans find no rows that may be invisible."""
        with self.translated():
            self._database.execute_sql("VACUUM (ANALYZE)")

    def failure(self, error: Exception) -> Failure:
        found = translate(error)
        if isinstance(found, MissingReference):
            return Failure(f"A row refers to a missing one: {reason(error)}. Delete it from the source.")
        if isinstance(found, Unavailable):
            return Failure(f"{self.name}: {reason(error)}.")
        return Failure(f"{self.name} cannot be used: {reason(error)}.")

    def close(self) -> None:
        self._database.close_all()
