"""A database for each test, copied from a migrated template, on both stores."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import pytest

from musicsvc.store import opening
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.schema import schema
from tests.support import postgres

T = TypeVar("T")


class Template(Protocol):
    """Creates and removes databases."""

    def make(self, folder: Path, number: int, *, migrated: bool, like: str = "") -> str:
        """Create a database, or copy the one at the address `like`; return its address. `folder` is the test's."""

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
        log = activity_log.LogFile(activity_log.default_file(self._file))
        log.prepare()
        log.close()

    def make(self, folder: Path, number: int, *, migrated: bool, like: str = "") -> str:
        """Copy the template to a data folder in the test's folder."""
        file = folder / f"data{number or ''}" / "musicsvc.db"
        file.parent.mkdir(mode=0o700)
        if migrated:
            copy_to(path_of(like) if like else self._file, file)
        else:
            files.create(file)
        return f"sqlite:///{file}"

    def make_log(self, url: str) -> None:
        """Copy the template's."""
        copy_to(activity_log.default_file(self._file), activity_log.default_file(path_of(url)))

    def remove(self, url: str) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def path_of(url: str) -> Path:
    """Return the file of a database on SQLite."""
    return Path(url.removeprefix("sqlite:///"))


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

    def make(self, folder: Path, number: int, *, migrated: bool, like: str = "") -> str:  # noqa: ARG002 - the interface
        """Copy the template on the server: its files, as copying through the log takes twice the time."""
        name, copied = next(self._names), self._name if migrated else "template0"
        if like:
            copied = name_of(like)
        self._admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{copied}" STRATEGY FILE_COPY')
        return postgres.database_url(self._server, name)

    def make_log(self, url: str) -> None:
        """It is a table of the template."""

    def remove(self, url: str) -> None:
        """Drop the database, terminating its connections."""
        self._admin.execute(f'DROP DATABASE IF EXISTS "{name_of(url)}" WITH (FORCE)')

    def close(self) -> None:
        """Drop the template."""
        self._admin.execute(f'DROP DATABASE "{self._name}" WITH (FORCE)')
        self._admin.close()


def name_of(url: str) -> str:
    """Return the name of a database on PostgreSQL."""
    return url.removeprefix("postgresql:///").partition("?")[0]


class Maker:
    """The databases of one test, by default copies of the template."""

    def __init__(self, template: Template, folder: Path, like: str = "") -> None:
        self._template = template
        self._folder = folder
        self._like = like
        self._made: list[str] = []

    def make(self, *, migrated: bool = True) -> str:
        """Create another database and return its address."""
        url = self._template.make(self._folder, len(self._made), migrated=migrated, like=self._like)
        self._made.append(url)
        return url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for url in self._made:
            self._template.remove(url)


class Filled(NamedTuple, Generic[T]):
    """A database that tests copy, and what was made in it."""

    url: str
    made: T


@contextmanager
def filled(template: Template, folder: Path, fill: Callable[[Store], T]) -> Iterator[Filled[T]]:
    """Create a database with content that tests copy; yield its address and the result of `fill`."""
    with Maker(template, folder) as maker:
        url = maker.make()
        with opening.connect(url) as store:
            made = fill(store)
        yield Filled(url, made)


def prefilling(fill: Callable[[Store], T]) -> Callable[..., Iterator[Filled[T]]]:
    """Make a fixture of a function: the database that it fills once for the module, and what it returns."""

    @pytest.fixture(scope="module", name=fill.__name__)
    def fixture(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled[T]]:
        with filled(template, tmp_path_factory.mktemp("filled"), fill) as found:
            yield found

    return fixture
