"""A database for each test, copied from a migrated template, on both stores."""

import itertools
import shutil
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity import log_file
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema
from tests.support import postgres


class Template(Protocol):
    """Creates and removes databases."""

    def make(self, folder: Path, number: int, *, migrated: bool) -> str:
        """Create a database and return its address; `folder` is that of the test."""

    def make_log(self, url: str) -> None:
        """Put the log of calls where a server would make it, which takes longer."""

    def remove(self, url: str) -> None:
        """Remove the database, closing its connections."""

    def close(self) -> None:
        """Remove the template."""


class SqliteTemplate:
    """A template for SQLite; the folder of the test is removed by pytest."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "musicsvc.db"
        files.create(self._file)
        schema.upgrade(f"sqlite:///{self._file}")
        log = log_file.LogFile(log_file.default_file(self._file))
        log.prepare()
        log.close()

    def make(self, folder: Path, number: int, *, migrated: bool) -> str:
        """Copy the template to a data folder in the test's folder."""
        file = folder / f"data{number or ''}" / "musicsvc.db"
        file.parent.mkdir(mode=0o700)
        if migrated:
            copy_to(self._file, file)
        else:
            files.create(file)
        return f"sqlite:///{file}"

    def make_log(self, url: str) -> None:
        """Copy the template's."""
        copy_to(log_file.default_file(self._file), log_file.default_file(Path(url.removeprefix("sqlite:///"))))

    def remove(self, url: str) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def copy_to(made: Path, file: Path) -> None:
    """Copy a file that only its owner can read."""
    shutil.copy(made, file)
    file.chmod(0o600)


class PostgresTemplate:
    """A template on the run's server; names contain the number of the test worker."""

    def __init__(self, server: Path, worker: str) -> None:
        import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

        self._server = server
        self._names = (f"{worker}_{number}" for number in itertools.count(1))
        self._name = f"{worker}_template"
        self._admin = psycopg.connect(postgres.database_url(server, "postgres"), autocommit=True)
        self._admin.execute(f'CREATE DATABASE "{self._name}" TEMPLATE template0')
        schema.upgrade(postgres.database_url(server, self._name))
        activity_log.create(postgres.database_url(server, self._name))

    def make(self, folder: Path, number: int, *, migrated: bool) -> str:  # noqa: ARG002 - the interface
        """Copy the template on the server: its files, as copying through the log takes twice the time."""
        name, copied = next(self._names), self._name if migrated else "template0"
        self._admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{copied}" STRATEGY FILE_COPY')
        return postgres.database_url(self._server, name)

    def make_log(self, url: str) -> None:
        """It is a table of the template."""

    def remove(self, url: str) -> None:
        """Drop the database, terminating its connections."""
        name = url.removeprefix("postgresql:///").partition("?")[0]
        self._admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def close(self) -> None:
        """Drop the template."""
        self._admin.execute(f'DROP DATABASE "{self._name}" WITH (FORCE)')
        self._admin.close()


class Maker:
    """The databases of one test."""

    def __init__(self, template: Template, folder: Path) -> None:
        self._template = template
        self._folder = folder
        self._made: list[str] = []

    def make(self, *, migrated: bool = True) -> str:
        """Create another database and return its address."""
        url = self._template.make(self._folder, len(self._made), migrated=migrated)
        self._made.append(url)
        return url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for url in self._made:
            self._template.remove(url)
