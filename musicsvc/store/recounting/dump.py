"""Open a folder with dumped plays, and check its files against the manifest."""

import hashlib
import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError

from musicsvc import clock
from musicsvc.errors import Failure
from musicsvc.store.plays.periods import Window, to_day

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
TABLES = ("tracks", "albums", "artists", "track_artists", "album_artists")
DAY_OF = re.compile(r"plays/day=(\d{4}-\d\d-\d\d)/")
SPECIAL = re.compile(r"[*?\[\]{}'\"\\]")  # the engines read them in a path as patterns or quotes


class DumpedFile(BaseModel):
    """A file of the dump. `path`: below its folder."""

    path: str = Field(pattern=r"^(plays/day=\d{4}-\d\d-\d\d|tables)/[\w.-]+\.parquet$")
    rows: int
    sha256: str

    @property
    def day(self) -> int | None:
        """The day of the plays in this file, or None if it is a table."""
        found = DAY_OF.match(self.path)
        return to_day(date.fromisoformat(found[1])) if found else None


class Manifest(BaseModel):
    schema_version: int
    files: list[DumpedFile]
    dumped_at: str
    complete_from: date | None


class Dump(NamedTuple):
    """Dumped plays. `dumped_at`: when the database was read. Plays before the day `complete_from` were deleted."""

    folder: Path
    files: list[DumpedFile]
    dumped_at: int
    complete_from: int

    def plays(self, window: Window | None = None) -> list[str]:
        """Return the paths of the files with plays on the days of the window; None: on any day."""
        files = ((each.path, each.day) for each in self.files)
        return [path for path, day in files if day is not None and (window is None or day in window.numbers)]

    def table(self, name: str) -> list[str]:
        """Return the paths of the files of a table."""
        pattern = re.compile(rf"tables/{name}(-\d+)?\.parquet")
        return [each.path for each in self.files if pattern.fullmatch(each.path)]

    def rows_by_day(self) -> dict[int, int]:
        """Return the numbers of plays by day, as the manifest states them."""
        found: dict[int, int] = {}
        for each in self.files:
            if each.day is not None:
                found[each.day] = found.get(each.day, 0) + each.rows
        return found

    @property
    def first_day(self) -> int | None:
        return min(self.rows_by_day(), default=None)


def load(folder: Path) -> Dump:
    """Open a dump and check the SHA-256 of its files. Raises Failure if a file is missing or differs."""
    place = folder.absolute()
    if SPECIAL.search(str(place)):
        raise Failure(f"The path of the folder must not contain any of * ? [ ] {{ }} ' \" \\: {place}")
    manifest = _manifest(place)
    _check(place, manifest.files)
    kept = manifest.complete_from
    dump = Dump(place, manifest.files, clock.parse(manifest.dumped_at), to_day(kept) if kept else 0)
    for table in TABLES:
        if not dump.table(table):
            raise Failure(f"{place / MANIFEST} names no file tables/{table}.parquet. Run: {_again(place)}")
    return dump


def _manifest(folder: Path) -> Manifest:
    file = folder / MANIFEST
    try:
        data = json.loads(file.read_bytes())
        version = data["schema_version"]
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise Failure(
                f"{file} has schema_version {version}, and this version reads {SCHEMA_VERSION}. Use the version of"
                " musicsvc that wrote it, or a newer one."
            )
        return Manifest.model_validate(data)
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}. To write a dump, run: {_again(folder)}") from None
    except (ValueError, KeyError, TypeError, ValidationError):
        raise Failure(f"{file} is not the manifest of a dump. To write a new one, run: {_again(folder)}") from None


def _check(folder: Path, files: Iterable[DumpedFile]) -> None:
    for each in files:
        file = folder / each.path
        try:
            with file.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise Failure(f"{file} cannot be read: {error.strerror}. Run: {_again(folder)}") from None
        if found != each.sha256:
            raise Failure(f"{file} is not the file that was dumped: its SHA-256 is {found}. Run: {_again(folder)}")


def _again(folder: Path) -> str:
    return f"musicsvc plays dump -o {folder}"
