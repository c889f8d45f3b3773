"""Replace the content of a SQLite database that is in use by that of a backup."""

from pathlib import Path

import apsw

from musicsvc.errors import Unavailable
from musicsvc.store.backups.create import BUSY_MILLISECONDS
from musicsvc.store.catalog import changes


def overwrite(path: Path, backup: Path) -> None:
    """Copy the backup into the open database at `path`, in one transaction, so that connections stay open.

    The backup must be of the same schema. Raises Unavailable if the database stays locked.
    """
    source = apsw.Connection(str(backup), flags=apsw.SQLITE_OPEN_READWRITE)
    target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        changes.renew_epoch(source)  # cursors may be newer than the backup
        target.set_busy_timeout(BUSY_MILLISECONDS)
        with target.backup("main", source, "main") as copying:
            copying.step()
    except (apsw.BusyError, apsw.LockedError):
        raise Unavailable from None
    finally:
        target.close()
        source.close()
