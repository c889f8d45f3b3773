"""Read the listening histories in a zip archive."""

import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from musicsvc.errors import Failure
from musicsvc.store.importing.files.formats import TAKEOUT, UNPACK
from musicsvc.store.importing.files.records import Reader, Remark, Step
from musicsvc.store.importing.files.unpacking.kinds import BROKEN_ZIP
from musicsvc.wording import SHOWN, cut

LARGEST = 1024 * 1024 * 1024  # bytes
LONGEST_NAME = 60  # characters of the end of a name, which a file system takes
ENCRYPTED = 1  # a bit among the flags of a member
KINDS = (".json", ".jsonl", ".csv", ".log", ".txt", ".gz")


class Archive(Reader):
    """Reads all listening histories in a zip file. `open_member` opens an unpacked file, or returns None to skip it."""

    columns = None

    def __init__(
        self, path: Path, folder: Path, open_member: Callable[[Path], Reader | None], largest: int | None
    ) -> None:
        """Open the archive, whose members are unpacked into `folder`. Raises Failure if it is damaged."""
        self._path = path
        self._folder = folder
        self._largest = largest or LARGEST
        self._open = open_member
        self._said: dict[Remark, None] = {}
        try:
            self._zip = zipfile.ZipFile(path)
        except BROKEN_ZIP:
            raise Failure(f"{path} is damaged: it cannot be read as a zip file.") from None
        self._members = [each for each in self._zip.infolist() if Path(each.filename).suffix.lower() in KINDS]
        self.size = sum(member.file_size for member in self._members)

    @property
    def remarks(self) -> Sequence[Remark]:
        return [*self._said]

    def steps(self) -> Iterator[Step]:
        """Yield the rows of all histories. The files of the archive are read in the order of their names.

        Raises Failure if it has none.
        """
        histories = 0
        for member in sorted(self._members, key=lambda each: each.filename):
            unpacked, name = self._unpack(member), member.filename
            if len(name) > SHOWN:
                name = f"…{name[-SHOWN:]}"  # files often have one beginning: that of their folder
            try:
                if (reader := self._open(unpacked)) is not None:
                    histories += 1
                    with reader:
                        for record in reader:
                            yield record._replace(member=name)
                        self._said |= dict.fromkeys(reader.remarks)
            except Failure as failure:
                raise Failure(failure.message.replace(str(unpacked), f"{self._path}: {name}")) from None
            finally:
                unpacked.unlink()
            self._read += member.file_size
        if not histories:
            page = any(name.endswith(".html") for name in self._zip.namelist())
            raise Failure(f"{self._path} holds no listening history in a known format.{f' {TAKEOUT}' * page}")

    def _unpack(self, member: zipfile.ZipInfo) -> Path:
        if member.file_size > self._largest:
            raise Failure(f"{self._path}: {cut(member.filename)} is larger than {self._largest:,} bytes.")
        if member.flag_bits & ENCRYPTED:
            raise Failure(f"{self._path} has a password. {UNPACK}")
        target = self._folder / Path(member.filename).name[-LONGEST_NAME:]
        try:
            with self._zip.open(member) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
        except BROKEN_ZIP:
            raise Failure(f"{self._path} is damaged: {cut(member.filename)} cannot be unpacked.") from None
        return target

    def close(self) -> None:
        self._zip.close()
