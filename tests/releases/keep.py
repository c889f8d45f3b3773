"""Keep this release: `python -m tests.releases.keep` writes its files to `tests/releases/kept`.

Run it once, for the version that is released, before the version in pyproject.toml becomes the next one.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import musicsvc
from musicsvc.clock import MovableClock
from musicsvc.server.openapi import document as openapi
from musicsvc.store import opening
from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import history, schema
from tests.releases import kept, world
from tests.releases.kept import Release
from tests.support import postgres
from tests.support.serving import running

NAME = "released"
NO_VERSIONS = "--exclude-table-data=table_version"  # they contain numbers of connections, and differ in every run


def main() -> None:
    version = musicsvc.__version__
    if version != ".".join(map(str, history.release(version))):
        sys.exit(f"{version} is no release. Set the version in pyproject.toml, and install again.")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSICSVC_DATA_DIR", folder)
        contents, parts = _keep_sqlite(version, Path(folder), patch)
        contents |= _keep_postgres(Path(folder), patch)
    contents["openapi.json.xz"] = json.dumps(openapi.document(), separators=(",", ":")).encode()
    for written in kept.write(version, parts, contents):
        print(f"{written.stat().st_size:>9,} bytes  {written}")  # noqa: T201 - the result of the script


def _keep_sqlite(version: str, folder: Path, patch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], dict[str, Release]]:
    file, whole = folder / "musicsvc.db", folder / "whole.db"
    log = activity_log.default_file(file)
    url = f"sqlite:///{file}"
    files.create(file)
    _fill(url, folder, patch)
    activity_log.create(url)
    with schema.migrating(url) as database:
        database.execute_sql("VACUUM INTO ?", (str(whole),))
    parts = {
        "database": Release(version, history.available(), kept.used(file)),
        "log": Release(version, history.available(activity_log.MIGRATIONS), kept.used(log)),
    }
    return {"sqlite.db.xz": whole.read_bytes(), "sqlite.json.xz": _answers(url)}, parts


def _keep_postgres(folder: Path, patch: pytest.MonkeyPatch) -> dict[str, bytes]:
    with _postgres_database() as url:
        _fill(url, folder, patch)
        program = str(postgres.find_binaries() / "pg_dump")
        options = ["--inserts", "--rows-per-insert=500", "--no-owner", "--no-privileges", NO_VERSIONS]
        dumped = subprocess.run([program, *options, url], capture_output=True, check=True).stdout
        # Lines for psql, and a setting that older versions of PostgreSQL do not know.
        left_out = (b"\\", b"SET transaction_timeout")
        statements = b"\n".join(line for line in dumped.splitlines() if not line.startswith(left_out))
        return {"postgres.sql.xz": statements, "postgres.json.xz": _answers(url)}


@contextmanager
def _postgres_database() -> Iterator[str]:
    server = postgres.Server()
    try:
        with psycopg.connect(postgres.database_url(server.folder, "postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{NAME}" TEMPLATE template0')
        yield postgres.database_url(server.folder, NAME)
    finally:
        server.stop()


def _fill(url: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("MUSICSVC_DATABASE_URL", url)
    schema.upgrade(url)
    world.make(url, folder)


def _answers(url: str) -> bytes:
    """Return the responses of a server over the database to every path, as JSON."""

    async def ask() -> dict[str, object]:
        with opening.connect(url) as store:
            async with running(store, MovableClock(world.NOW, speed=0)) as client:
                return await kept.ask(client, world.TOKEN, kept.paths())

    return json.dumps(asyncio.run(ask()), separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
