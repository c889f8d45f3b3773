"""The files that this process has open."""

from contextlib import suppress
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")


def open_files(folder: Path) -> list[str]:
    """Return the paths of open files and folders in the folder."""
    found = []
    for entry in DESCRIPTORS.iterdir():
        with suppress(OSError):  # closed meanwhile
            found.append(str(entry.readlink()))
    return [path for path in found if path.startswith(str(folder))]
