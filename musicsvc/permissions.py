"""Explain why the user of this process cannot open a file, and suggest a remedy."""

import os
import pwd
from pathlib import Path
from shlex import quote
from stat import S_IMODE
from typing import NamedTuple

ENTER, READ, WRITE = os.X_OK, os.R_OK, os.W_OK
CHOOSE = "or choose another folder (MUSICSVC_DATA_DIR is the data folder)."
VERBS = {ENTER: "enter", READ: "read", WRITE: "write to"}


class Denial(NamedTuple):
    """The reason why a file cannot be opened, and a remedy. Each is one sentence."""

    fault: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.fault} {self.remedy}"


def denial(file: Path, *, write: bool = False) -> Denial | None:
    """Return why this process cannot read the file, or None. `write`: also check writing to the file and the folder."""
    file = file.absolute()
    nearest = Path(file.anchor)
    for folder in reversed(file.parents):
        if not folder.is_dir():
            break
        if not os.access(folder, ENTER):
            return _denial(folder, ENTER, file)
        nearest = folder
    locked = write and os.statvfs(nearest).f_flag & os.ST_RDONLY  # changing permissions does not help
    write = write and not locked
    if write and not os.access(nearest, WRITE):
        return _denial(nearest, WRITE, file)
    for mode in (READ, WRITE) if write else (READ,):
        if file.exists() and not os.access(file, mode):
            return _denial(file, mode, file)
    if locked:
        fault = f"The folder {nearest} is on a read-only disk: {_me()} may not write to it."
        return Denial(fault, f"Mount a disk that this user may write to, {CHOOSE}")
    return None


def _denial(place: Path, mode: int, file: Path) -> Denial:
    status = place.stat()
    owner = _name(status.st_uid) or f"uid {status.st_uid}"
    kind = "folder" if place.is_dir() else "file"
    fault = (
        f"The {kind} {place} belongs to {owner} (mode {S_IMODE(status.st_mode):03o}): {_me()} may not {VERBS[mode]} it."
    )
    if status.st_uid == os.geteuid():
        return Denial(fault, f"Run: chmod u+{'rwx' if kind == 'folder' else 'rw'} {quote(str(place))}")
    if place in {file, file.parent}:  # folders further up may contain files of other users
        return Denial(
            fault, f"Run this as {owner}, or: sudo chown -R {_name(os.geteuid()) or os.geteuid()} {quote(str(place))}"
        )
    return Denial(fault, f"Run this as {owner}, {CHOOSE}")


def _me() -> str:
    name, uid = _name(os.geteuid()), os.geteuid()
    return f"{name} (uid {uid})" if name else f"uid {uid}"


def _name(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # as in containers, which may run under any uid
        return None
