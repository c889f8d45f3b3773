"""Open the database at a SQLite or PostgreSQL URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from musicsvc import extras
from musicsvc.errors import Failure

if TYPE_CHECKING:
    from musicsvc.store.engine.store import Replica, Store


def connect(url: str, migrations: Path | None = None, read_url: str = "", *, connections: int | None = None) -> Store:
    """Open the database at `url`. Raises Failure, with a remedy, if it is unusable or has another schema version.

    `migrations`: the folder of the migrations that it must have. Default: those of this version of the service.
    `read_url`: a read replica, which may be down, or an empty string. `connections`: the most connections of this
    process (PostgreSQL only).
    """
    from musicsvc.store.schema import schema  # noqa: PLC0415 - loads the drivers when a store is opened

    store = open_unchecked(url, connections)
    try:
        schema.require_current(store, migrations)
        if read_url:
            store.replica = _replica(read_url, store)
    except BaseException:
        store.close()
        raise
    return store


def open_unchecked(url: str, connections: int | None = None) -> Store:
    """Open the database at `url` without checking its schema, for the commands `init`, `db upgrade` and `db check`.

    Raises `Failure` if it is neither SQLite nor PostgreSQL.
    """
    if url.startswith("sqlite:///"):
        from musicsvc.store.engine.sqlite.store import SqliteStore  # noqa: PLC0415 - the same

        return SqliteStore(url)
    if url.startswith(("postgresql://", "postgres://")):
        with extras.required("postgres"):
            from musicsvc.store.engine.postgres.store import PostgresStore  # noqa: PLC0415 - the same
        return PostgresStore(url, connections=connections)
    raise Failure("The database address must start with sqlite:/// or postgresql:// (setting database_url).")


def _replica(url: str, primary: Store) -> Replica:
    from musicsvc.store.engine.postgres.replica import StandbyReplica  # noqa: PLC0415 - the same
    from musicsvc.store.schema import schema  # noqa: PLC0415 - the same

    return StandbyReplica(url, primary, schema.fault)
