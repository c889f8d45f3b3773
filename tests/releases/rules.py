"""The rule for migrations: the program of the release before goes on working while nodes are upgraded one by one.

So a column is dropped in three releases: one stops reading it, the next stops writing it, and the one after drops it.
A node of 0.1.0 reads the foreign keys when it starts. If one of its deletes changed rows of a table that was added
later, nodes of newer versions would show these rows for up to five seconds.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from musicsvc.store.activity import log as activity_log
from musicsvc.store.engine.sqlite import files
from musicsvc.store.schema import history, schema
from tests.releases.kept import Release, columns_of

READ_ONCE = "0.1.0"  # the last release that does not read the foreign keys again after an upgrade
FOLLOWING = """
    SELECT DISTINCT t.name, f."table" FROM pragma_table_list t JOIN pragma_foreign_key_list(t.name) f
    WHERE f.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
"""


def faults(folder: Path, releases: Sequence[Release]) -> list[str]:
    """Return one line for each migration of `folder` that the program of an earlier release would not survive.

    A release is earlier than a migration that it does not have. Its program must survive if it is not older than the
    migration's `oldest_program`, which must not be newer than the last earlier release.
    """
    with tempfile.TemporaryDirectory() as place:
        return list(_faults(folder, releases, Path(place) / "musicsvc.db"))


def _faults(folder: Path, releases: Sequence[Release], file: Path) -> Iterator[str]:
    files.create(file)
    table = activity_log.HISTORY if folder == activity_log.MIGRATIONS else schema.HISTORY
    oldest: dict[str, str] = {}
    for name in history.available(folder):
        with schema.migrating(f"sqlite:///{file}") as database:
            schema.apply(database, name, folder, table)
        oldest[name] = schema.load(name, folder).oldest_program
        earlier = [release for release in releases if name not in release.migrations]
        if earlier and history.release(oldest[name]) > history.release(earlier[-1].version):
            yield f"{name}: oldest_program is {oldest[name]}, but {earlier[-1].version} must go on working."
        for release in earlier:
            needed = history.oldest_program({each: at for each, at in oldest.items() if each not in release.migrations})
            if history.release(needed) <= history.release(release.version):
                yield from (f"{name}: {fault}" for fault in _broken(release, columns_of(file)))
                if release.version == READ_ONCE:
                    yield from (f"{name}: {fault}" for fault in _unnoticed(release, file))


def _broken(release: Release, columns: dict[str, dict[str, bool]]) -> Iterator[str]:
    """Yield one line for each column that the release uses and that is gone, or that its new rows would lack."""
    for table, used in release.uses.items():
        now = columns.get(table, {})
        for column in used:
            if column not in now:
                yield f"{table}.{column} is gone, but {release.version} uses it."
        for column, required in now.items():
            if required and column not in used:
                yield f"{table}.{column} must have a value, but {release.version} writes none."


def _unnoticed(release: Release, file: Path) -> Iterator[str]:
    """Yield one line for each table, unknown to the release, whose rows a delete by its program would change."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    for table, parent in connection.execute(FOLLOWING).fetchall():
        if table not in release.uses and parent in release.uses:
            yield f"deletes from {parent} change {table}, which {release.version} does not notice."
    connection.close()
