"""The lock under which imports, their undos and merges run one after the other on PostgreSQL.

Two imports at once would both find an item missing and both create it.
"""

from musicsvc.store.engine.sql import lock

LOCK_KEY = 0x6D737663


def lock_imports() -> None:
    """Wait until no import or merge is writing. Call it in a write transaction."""
    lock(LOCK_KEY)
