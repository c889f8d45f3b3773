"""A folder with a dump of all plays: Parquet files, and a manifest that names them.

New files are staged in a folder of their own first, under the hash of their rows, so that a dump which was interrupted
goes on where it ended. At last they replace the old ones. Meanwhile there is no manifest: it never names a file with
other rows than it says. If that is interrupted, the next dump ends it first.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from musicsvc import descriptors
from musicsvc.errors import Failure
from musicsvc.reports import columns
from musicsvc.reports.columns import Column, Kind
from musicsvc.reports.parquet import Writer

SCHEMA_VERSION = 1
MANIFEST = "manifest.json"
STAGED = ".staged"
OWN_FILES = ("plays/day=*/part-*.parquet", "tables/*.parquet")
HASH_BYTES = 16
PLAYS = "plays"
_POSITION = Column("position", "", Kind.COUNT, "The place among the artists, from 0; null for a deleted track.")
COLUMNS: Mapping[str, Sequence[Column]] = {
    PLAYS: (
        columns.COLUMNS["track_id"],
        Column("played_at", "", Kind.INSTANT, "The time of the play, in UTC."),
        Column("duration_ms", "", Kind.COUNT, "The milliseconds that were heard; null if unknown."),
        Column("listener", "", Kind.ID, "The internal number of the listener."),
    ),
    "tracks": (
        columns.COLUMNS["track_id"],
        Column("name", "", Kind.TEXT, "The track's name; null for a deleted track."),
        Column("duration_ms", "", Kind.COUNT, "The length in milliseconds; 0 if unknown."),
        Column("album_id", "", Kind.ID, "The album's id; null for a track without album."),
    ),
    "track_artists": (columns.COLUMNS["track_id"], columns.COLUMNS["artist_id"], _POSITION),
    "albums": (
        columns.COLUMNS["album_id"],
        Column("name", "", Kind.TEXT, "The album's name."),
        Column("release_date", "", Kind.DATE, "The release date; null if unknown."),
    ),
    "album_artists": (columns.COLUMNS["album_id"], columns.COLUMNS["artist_id"], _POSITION),
    "artists": (columns.COLUMNS["artist_id"], Column("name", "", Kind.TEXT, "The artist's name.")),
}


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A file of a dump. `content`: a hash of its rows, by which the next dump detects whether they changed."""

    path: str
    rows: int
    bytes: int
    sha256: str
    content: str


class Dump:
    """Stages the files of a dump that changed. Any thread may use it, one at a time."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self._folder = folder
        self._staged = folder / STAGED
        self._writer = writer
        self._before = {each["path"]: each for each in _load(folder).get("files", ())}
        self._closed = False
        self.begin()

    def begin(self) -> None:
        """Begin to add files, or begin again. What is staged already is not written again."""
        self.files: list[DumpFile] = []
        self.written: list[str] = []

    def add(self, table: str, path: str, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Add a file with rows of a table. Each piece is a number of rows, and a line of JSON for each of them.

        Raises `Failure` if the dump was closed meanwhile.
        """
        lines = self._staged / "rows.json"
        kinds = " ".join(f"{each.name} {each.kind.value}" for each in COLUMNS[table])
        content, rows = hashlib.blake2b(f"{SCHEMA_VERSION} {path} {kinds}\n".encode(), digest_size=HASH_BYTES), 0
        with lines.open("wb") as spooled:
            for number, piece in pieces:
                if self._closed:
                    raise Failure("The dump was interrupted. Run it again to go on.")
                content.update(piece)
                spooled.write(piece)
                rows += number
        known = self._before.get(path, {})
        if known.get("content") == content.hexdigest() and _has_size(self._folder / path, known["bytes"]):
            self.files.append(DumpFile(**known))
        else:
            self.files.append(self._stage(lines, table, DumpFile(path, rows, 0, "", content.hexdigest())))
            self.written.append(path)

    def _stage(self, lines: Path, table: str, file: DumpFile) -> DumpFile:
        """Convert the lines to a staged file, unless an interrupted dump did. Return `file` with size and checksum."""
        staged, unfinished = self._staged / file.content, self._staged / "rows.parquet"
        if not staged.exists():
            self._writer.write(lines, unfinished, COLUMNS[table], ordered=True)
            descriptors.sync(unfinished)
            unfinished.replace(staged)
        with staged.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        return DumpFile(file.path, file.rows, staged.stat().st_size, digest, file.content)

    def publish(self, about: Mapping[str, Any]) -> list[str]:
        """Let the staged files replace the old ones, and write the manifest, which also says `about`.

        Return the paths of files that are no longer part of the dump, and are deleted.
        """
        manifest = {"schema_version": SCHEMA_VERSION, **about, "files": [asdict(each) for each in self.files]}
        unfinished = self._staged / "manifest"
        unfinished.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2) + b"\n")
        descriptors.sync(unfinished)
        unfinished.replace(self._staged / MANIFEST)
        descriptors.sync(self._staged)
        return _place(self._folder)

    def close(self) -> None:
        """End a call of `add` on another thread with a Failure."""
        self._closed = True


@contextmanager
def opened(folder: Path) -> Iterator[Dump]:
    """Lock the folder of a dump for the `with` block, and create it if it is missing.

    Raises Failure for a folder with other files, and if another process dumps to it. If files cannot be written, such
    as on a full disk, those staged are deleted; the dump before stays valid.
    """
    _check(folder)
    staged = folder / STAGED
    writer = Writer(staged)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        _check(folder)
        try:
            if (staged / MANIFEST).exists():
                _place(folder)
            staged.mkdir(exist_ok=True)
            yield Dump(folder, writer)
        except OSError as error:
            if not (staged / MANIFEST).exists():  # else the next dump goes on
                shutil.rmtree(staged, ignore_errors=True)
            error.filename = str(folder)
            raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with descriptors.opened(folder) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Failure(f"Another dump to {folder} is running. Wait until it ends.") from None


def _check(folder: Path) -> None:
    """Raise Failure unless the folder is missing, empty, or has a dump or the beginning of one."""
    if folder.exists() and not folder.is_dir():
        raise Failure(f"{folder} is a file. Name a folder.")
    names = {each.name for each in folder.iterdir()} if folder.exists() else set()
    if names and STAGED not in names and _load(folder).get("schema_version") != SCHEMA_VERSION:
        raise Failure(f"{folder} has other files than a dump of this version. Name a new folder.")


def _load(folder: Path) -> Any:
    """Return the manifest of a folder, or {} if there is none that can be read."""
    with suppress(FileNotFoundError, orjson.JSONDecodeError):
        found = orjson.loads((folder / MANIFEST).read_bytes())
        return found if isinstance(found, dict) else {}
    return {}


def _has_size(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def _place(folder: Path) -> list[str]:
    """Replace the files of the dump by staged ones, and the manifest at last. Do what is not done yet.

    Return the paths of the deleted files.
    """
    staged = folder / STAGED
    named = {folder / each["path"]: staged / each["content"] for each in _load(staged)["files"]}
    moves = {target: source for target, source in named.items() if source.exists()}
    stale = [file for pattern in OWN_FILES for file in folder.glob(pattern) if file not in named]
    for parent in {target.parent for target in moves}:
        parent.mkdir(parents=True, exist_ok=True)
    if moves or stale:
        (folder / MANIFEST).unlink(missing_ok=True)
        descriptors.sync(folder)
    for target, source in moves.items():
        source.replace(target)
    for file in stale:
        file.unlink()
    changed = {file.parent for file in (*moves, *stale)}
    for parent in changed | {parent.parent for parent in changed}:
        with suppress(OSError):  # it has other files
            parent.rmdir()
        if parent.exists():
            descriptors.sync(parent)
    (staged / MANIFEST).replace(folder / MANIFEST)
    descriptors.sync(folder)
    shutil.rmtree(staged)
    return sorted(str(file.relative_to(folder)) for file in stale)
