"""Find plays that earlier imports stored, and repeated client_ids in a file."""

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.importing.plays.listen_rows import Listen
from musicsvc.store.importing.plays.matching import TrackLookup
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import listeners

ADD = "INSERT OR IGNORE INTO seen VALUES (?)"
HAS = "SELECT 1 FROM seen WHERE key = ?"
MAX_IN_MEMORY = 100_000
# Plays of the same file are left to the primary key: two of its rows may name two tracks of the same name.
STORED = """
    SELECT p.slot, l.key, p.track_id, p.listener_id, p.client_key, p.names_hash
    FROM play p JOIN listener l ON l.id = p.listener_id
    WHERE p.slot {slots} AND l.key {keys} AND p.reporter = 0 AND p.import_id IS DISTINCT FROM ?
    UNION ALL
    SELECT d.slot, l.key, 0, d.listener_id, d.client_key, d.names_hash
    FROM dropped_play d JOIN listener l ON l.id = d.listener_id
    WHERE d.slot {slots} AND l.key {keys} AND d.names_hash IS NOT NULL
"""


class StoredPlay(NamedTuple):
    track: int
    listener: int
    client_key: bytes
    names_hash: int | None


class KnownPlays:
    """The plays that earlier imports stored and that have the listener and the time of a row in the batch.

    They include those that a merge of tracks dropped.
    """

    def __init__(self, listens: Sequence[Listen], run: int) -> None:
        """Load the plays of all imports except `run`, the running one. Call in a transaction."""
        self._plays: dict[tuple[int, str], list[StoredPlay]] = defaultdict(list)
        slots, numbers = sql.in_list({listen.played_at // SLOT for listen in listens})
        keys, names = sql.in_list({listeners.opaque_key(listen.listener) for listen in listens})
        statement = STORED.format(slots=slots, keys=keys)
        for slot, key, *values in fetch(statement, numbers, names, run, numbers, names):
            self._plays[slot, key].append(StoredPlay(*values))

    def has(self, listen: Listen, lookup: TrackLookup) -> bool:
        """Return whether the row repeats a stored play.

        It repeats a play that was imported with the same names, or whose track now matches the row's ids or names.
        """
        stored = self._plays.get((listen.played_at // SLOT, listeners.opaque_key(listen.listener)), ())
        if not stored or listen.track_id is not None:
            return False
        names_hash = hash_names(listen)
        if any(play.names_hash == names_hash for play in stored):
            return True
        alike = lookup.alike(listen)
        return any(
            play.track in alike and play.client_key == client_key(listen, play.track, play.listener) for play in stored
        )


def hash_names(listen: Listen) -> int | None:
    """Return a 63-bit hash of the row's client_id and its track's names or codes, or None if it has a track_id."""
    if listen.track_id is not None:
        return None
    named = (listen.artists, listen.track) if listen.artists and listen.track else (listen.external_ids, listen.isrc)
    when = None if listen.client_id is None else (listen.client_id, listen.played_at)
    return _digest(named, when)


@lru_cache(1024)  # rows of a file often name the same tracks
def _digest(named: tuple[object, ...], when: tuple[str, int] | None) -> int:
    return int.from_bytes(hashlib.blake2b(repr((named, when)).encode(), digest_size=8).digest()) >> 1


def client_key(listen: Listen, track: int, listener: int) -> bytes:
    """Return the key that is stored with the row's play of this track: a hash of client_id, listener, track and time.

    A client_id is unique only in its file, so the client_id alone does not identify a play. `listener`: the id of the
    row's listener. Its name is not hashed, as nobody must find an erased listener by a guessed name.
    """
    if listen.client_id is None:
        return WITHOUT_ID
    return ingest.client_key("import", repr((track, listen.played_at, listener, listen.client_id)))


class SeenIds:
    """The client_ids of a file. More than MAX_IN_MEMORY of them are stored in a temporary SQLite database."""

    def __init__(self) -> None:
        self._in_memory: set[bytes] = set()
        self._database: sqlite3.Connection | None = None

    def has(self, client_id: str) -> bool:
        key = _hash(client_id)
        if self._database is None:
            return key in self._in_memory
        return self._database.execute(HAS, (key,)).fetchone() is not None

    def add(self, client_id: str) -> None:
        if self._database is not None:
            self._database.execute(ADD, (_hash(client_id),))
            return
        self._in_memory.add(_hash(client_id))
        if len(self._in_memory) > MAX_IN_MEMORY:
            self._move_to_database()

    def _move_to_database(self) -> None:
        # Transactions use it from different threads of the store, but never at the same time.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO seen VALUES (?)", ((key,) for key in sorted(self._in_memory)))
        self._in_memory.clear()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()


def _hash(client_id: str) -> bytes:
    return hashlib.blake2b(client_id.encode(), digest_size=16).digest()
