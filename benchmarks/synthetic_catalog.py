"""A database with a synthetic catalog of any size, and a token to read it; it may be kept and used again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import schema
from musicsvc.store.seeding import fixtures, synthetic
from tests.support import postgres


def sqlite(folder: Path, albums: int) -> str:
    """Return the address of the database of this size in the folder, which is created if it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{albums}-albums.db"
    if not file.exists():
        files.create(file)
    return f"sqlite:///{file}"


@contextmanager
def own_postgres() -> Iterator[str]:
    """Start a PostgreSQL. Yield the address of an empty database."""
    server = postgres.Server()
    try:
        yield postgres.database_url(server.folder, "postgres")
    finally:
        server.stop()


def fill(url: str, albums: int) -> str:
    """Create the catalog, as far as it is missing. Return a new token of the demo account."""
    now = Clock().now()
    schema.upgrade(url)
    with opening.connect(url) as store:
        store.write(lambda: fixtures.load(now=now)).result()
        synthetic.create(store, albums / synthetic.ALBUMS, 1, on_progress=lambda *_: None)
        return store.write(lambda: tokens.create(users.by_email(fixtures.DEMO_EMAIL), "benchmark", now=now)[1]).result()
