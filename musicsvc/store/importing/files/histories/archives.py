"""Read the listening histories in a zip archive."""

import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from musicsvc import scratch
from musicsvc.errors import Failure
from musicsvc.store.importing.files.formats import BROKEN_ZIP
from musicsvc.store.importing.files.records import Reader, Record

LARGEST = 1024 * 1024 * 1024
KINDS = (".json", ".jsonl", ".csv", ".log", ".txt", ".gz")


class Archive(Reader):
    """Reads all listening histories in a zip file. `open_member` opens an unpacked file, or returns None to skip it."""

    columns = None

    def __init__(self, path: Path, open_member: Callable[[Path], Reader | None]) -> None:
        """Open the archive. Raises Failure if it is damaged."""
        self._path = path
        self._open = open_member
        self._read = 0
        try:
            self._zip = zipfile.ZipFile(path)
        except BROKEN_ZIP:
            raise Failure(f"{path} is damaged: it cannot be read as a zip file.") from None
        self._members = [each for each in self._zip.infolist() if Path(each.filename).suffix.lower() in KINDS]
        self.size = sum(member.file_size for member in self._members)

    @property
    def position(self) -> int:
        return self._read

    def __iter__(self) -> Iterator[Record]:
        """Yield the rows of all histories. The files of the archive are read in the order of their names."""
        histories = 0
        for member in sorted(self._members, key=lambda each: each.filename):
            with scratch.folder(None) as folder:
                reader = self._open(self._unpack(member, folder))
                if reader is None:
                    continue
                histories += 1
                with reader:
                    for record in reader:
                        yield record._replace(member=member.filename)
            self._read += member.file_size
        if not histories:
            raise Failure(f"{self._path} holds no listening history in a known format.")

    def _unpack(self, member: zipfile.ZipInfo, folder: Path) -> Path:
        if member.file_size > LARGEST:
            raise Failure(f"{self._path}: {member.filename} is larger than {LARGEST:,} bytes.")
        target = folder / Path(member.filename).name
        try:
            with self._zip.open(member) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
        except BROKEN_ZIP:
            raise Failure(f"{self._path} is damaged: {member.filename} cannot be unpacked.") from None
        return target

    def close(self) -> None:
        self._zip.close()
