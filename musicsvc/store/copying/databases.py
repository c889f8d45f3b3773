"""A database that is copied or compared, with its activity log, over connections of its own."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Self

from peewee import Database

from musicsvc.errors import Failure
from musicsvc.store.activity import log as activity_log
from musicsvc.store.copying.tables import CopiedTable, Row
from musicsvc.store.engine.sql import bound
from musicsvc.store.engine.url import describe
from musicsvc.store.models import LOG_TABLES
from musicsvc.store.schema import history, schema


class CopiedDatabase(ABC):
    """The connections to a database and to its activity log, for the thread that opened them."""

    main: Database
    log: Database | None  # None: there is no activity log
    errors: tuple[type[Exception], ...]  # of the driver

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = describe(url)

    @abstractmethod
    def begin(self) -> None:
        """Begin to read one snapshot, from which all rows come until the connections are closed."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[bool]:
        """Keep others away from the database in the `with` block, where possible. Yield False if others use it."""

    def has_company(self) -> bool:
        """Return whether others use the database that `alone` could not keep away."""
        return False

    def loosen(self) -> str:
        """Suspend triggers and foreign keys for a copy to this database. Return the SQL that `tighten` needs."""
        return ""

    @abstractmethod
    def tighten(self, statements: str) -> None:
        """Undo `loosen`. Raises Failure if a row refers to a missing one."""

    @abstractmethod
    def next_id(self, table: CopiedTable) -> int:
        """Return the largest id that rows of the table in the current database have had, also before they went."""

    @abstractmethod
    def set_next_id(self, table: CopiedTable, last: int) -> None:
        """Let new rows of the table in the current database have ids after `last`."""

    def tidy(self) -> None:  # noqa: B027 - SQLite needs nothing
        """Prepare the database for use after many rows were added."""

    @abstractmethod
    def failure(self, error: Exception) -> Failure:
        """Return a Failure that names the database, for an error of its driver."""

    @abstractmethod
    def close(self) -> None: ...

    def database(self, table: CopiedTable) -> Database | None:
        """Return the database that contains the table. None: there is no activity log."""
        return self.log if table.model in LOG_TABLES else self.main

    def rows(self, table: CopiedTable, start: Row = ()) -> Iterator[Row]:
        """Yield the rows of the table in the order of keys, or those from the key `start` on."""
        if (database := self.database(table)) is not None:
            with self.translated():
                yield from table.rows(database, start)

    def writer(self, table: CopiedTable) -> Database:
        """Return the database that contains the table. Raises Failure if there is no activity log."""
        if (database := self.database(table)) is None:
            raise Failure(f"{self.name} has no activity log. Run: musicsvc init")
        return database

    def count(self, table: CopiedTable) -> int:
        if (database := self.database(table)) is None:
            return 0
        with self.translated(), bound(database):
            return table.count()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise Failure, which names the database, in place of errors of its driver in the `with` block."""
        try:
            yield
        except self.errors as error:
            raise self.failure(error) from error

    def require_current(self, *, finished: bool = True) -> None:
        """Raise Failure unless the database has the schema of this version, and is no unfinished copy if `finished`."""
        with self.translated(), bound(self.main):
            have = schema.applied()
            problem = schema.unfinished(self.name) if finished or history.missing(have) else None
            problem = problem or schema.outdated(self.name)
            newer = history.unknown(have)
        if newer:
            problem = f"{self.name} has the schema of a newer musicsvc ({newer[-1]}). Install it to copy or compare."
        if problem:
            raise Failure(problem)

    def open_log(self, log: Database) -> None:
        """Use this database of the activity log, if it has one. Raises Outdated if it is of another version."""
        with self.translated(), bound(log):
            self.log = log if activity_log.exists() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
