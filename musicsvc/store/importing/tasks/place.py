"""The folder of uploaded files on this machine, with a folder for each account."""

import fcntl
import hashlib
import os
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from musicsvc.errors import Conflict

PRIVATE = 0o700
BUSY = "Your last file is still being read. Wait until it is done, then try again."


class Place(NamedTuple):
    """A folder of uploaded files. A process that uses the files of an account locks the account's folder."""

    folder: Path

    @classmethod
    def build(cls, parent: Path, url: str) -> Self:
        """Return the place for files of the database with this URL; others may have theirs in the same folder."""
        return cls(parent / f"uploads-{hashlib.sha256(url.encode()).hexdigest()[:16]}")

    @property
    def name(self) -> str:
        """The name in the database, which differs between machines."""
        return f"{socket.gethostname()}:{self.folder}"

    @contextmanager
    def locked(self, user: int) -> Iterator[Path]:
        """Lock the folder of an account's files, and yield it. Raises Conflict if it is in use."""
        folder = self.folder / str(user)
        folder.mkdir(PRIVATE, parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Conflict(BUSY) from None
            yield folder
        finally:
            os.close(lock)

    def users(self) -> list[int]:
        """Return the accounts that have a folder."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return [int(each.name) for each in found if each.name.isdecimal()]


def tidy(folder: Path, kept: Collection[str]) -> None:
    """Delete the files of a locked folder, except those in `kept` and the lists of refused rows that belong to them."""
    names = {*kept, *map(refused_name, kept)}
    for each in folder.iterdir():
        if each.name not in names:
            each.unlink(missing_ok=True)


def refused_name(stored_as: str) -> str:
    """Return the name of the file with the refused rows of an uploaded file."""
    return f"{stored_as.partition('.')[0]}-refused.csv"
