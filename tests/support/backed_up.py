"""Databases to back up and to restore."""

import shutil
from pathlib import Path

import apsw

from musicsvc.store import opening
from musicsvc.store.backups import restore as restore_backup
from musicsvc.store.engine.sql import current
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Genre, Tag
from tests.store.backups.killed_restoring import NOW

PARTS = 3
GENRES = """
INSERT INTO genre (name, display_name)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3999)
SELECT 'first-' || i, printf('%1000d', i) FROM n
"""
TAGS = "INSERT INTO tag (name) SELECT name || '.' || part.value FROM genre, json_each('[0, 1, 2]') AS part"


def add(url: str, name: str) -> None:
    with opening.connect(url) as store:
        store.write(lambda: Tag.create(name=name)).result()


def killed_beside_its_wal(path: Path, folder: Path) -> None:
    """Copy the database with a WAL that holds the tag `late`, as a killed server leaves it."""
    folder.mkdir(mode=0o700)
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO tag (name) VALUES ('late')")
    for side in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{side}", folder / f"musicsvc.db{side}")
    connection.close()


def restore(backup: Path, path: Path) -> restore_backup.RestoreResult:
    return restore_backup.restore(backup, path, now=NOW)


def fill(store: Store) -> Path:
    """Fill the store with a few megabytes; return its file."""
    store.write(lambda: current().execute_sql(GENRES) and current().execute_sql(TAGS) and None).result()
    return Path(store.url.removeprefix("sqlite:///"))


def unit(name: str) -> None:
    """Write a genre and its tags in one unit."""
    Genre.insert(name=name, display_name=name).execute()
    for part in range(PARTS):
        Tag.insert(name=f"{name}.{part}").execute()


def names(path: Path) -> tuple[set[str], set[str]]:
    """The genres and tags of a backup."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    genres = {str(name) for (name,) in connection.execute("SELECT name FROM genre")}
    tags = {str(name) for (name,) in connection.execute("SELECT name FROM tag")}
    connection.close()
    return genres, tags
