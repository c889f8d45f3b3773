"""A PostgreSQL server with a migrated database, and a standby of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
import pytest

from musicsvc.store.schema import schema
from tests.support import postgres

PAUSE, RESUME = "SELECT pg_wal_replay_pause()", "SELECT pg_wal_replay_resume()"


class Servers(NamedTuple):
    """A primary with a migrated database, and its standby."""

    primary: postgres.Server
    standby: postgres.Standby

    @property
    def url(self) -> str:
        return postgres.database_url(self.primary.folder, "music")

    @property
    def read_url(self) -> str:
        return postgres.database_url(self.standby.folder, "music")

    def on_primary(self, statement: str) -> None:
        run(self.url, statement)

    def on_standby(self, statement: str) -> None:
        run(self.read_url, statement)


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


@contextmanager
def replicated() -> Iterator[Servers]:
    """Start both servers, for the block. Skips the test where PostgreSQL is missing."""
    try:
        primary = postgres.Server()
    except postgres.MissingError as error:
        pytest.skip(str(error))
    try:
        run(postgres.database_url(primary.folder, "postgres"), "CREATE DATABASE music TEMPLATE template0")
        schema.upgrade(postgres.database_url(primary.folder, "music"))
        standby = postgres.Standby(primary)
        try:
            yield Servers(primary, standby)
        finally:
            standby.stop()
    finally:
        primary.stop()
