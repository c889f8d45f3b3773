"""Listening histories exported by other services: detect the format of a file, and convert its plays to rows."""

from contextlib import closing
from pathlib import Path

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats, readers
from musicsvc.store.importing.files.histories import detection
from musicsvc.store.importing.files.histories.archives import Archive
from musicsvc.store.importing.files.histories.documents import Table
from musicsvc.store.importing.files.histories.known import FORMATS, as_history, open_history
from musicsvc.store.importing.files.limited import LimitedReader
from musicsvc.store.importing.files.lines import Lines
from musicsvc.store.importing.files.records import NONE, Limits, Reader


def is_history(path: Path, form: str | None, limits: Limits = NONE, *, mapped: bool) -> bool:
    """Return True if the file is a listening history in another service's format, False if it is a plain table.

    If `mapped` is set (the user maps columns to fields), it is a table. Raises Failure if the file cannot be read.
    """
    if form is not None or mapped:
        return form is not None and form not in formats.FORMATS
    kind = formats.kind_of(path, limits)
    return kind is formats.ARCHIVE or (kind is None and detection.history_of(path) is not None)


def open_file(
    path: Path,
    form: str | None = None,
    sheet: str | None = None,
    limits: Limits = NONE,
    encoding: str | None = None,
    *,
    mapped: bool = False,
) -> Reader:
    """Open the file in the format `form`; if it is None, detect the format. Raises Failure for bad files.

    `mapped`: the user maps columns to fields, so the file is a plain table. `sheet`, `encoding`: see
    `readers.open_file`.
    """
    if not is_history(path, form, limits, mapped=mapped):
        table = readers.open_file(path, form, sheet, limits, encoding)
        return table if mapped or form in readers.TEXTS else as_history(table)
    if form is not None and form not in FORMATS:
        raise Failure(f"There is no format {form}. The formats are {', '.join([*formats.FORMATS, *FORMATS])}.")
    if mapped:
        raise Failure(f"The columns of {form} are known. Leave out --map, or --format {form}.")
    if sheet is not None:
        raise Failure(f"{path} has no sheets. Leave out --sheet.")
    zipped = formats.kind_of(path, limits) is formats.ARCHIVE
    if zipped and encoding is not None:
        raise Failure(f"{path} is a zip file. Unpack it, or leave out --encoding.")
    chosen = {"form": form, "zipped": zipped, "largest": limits.history, "encoding": encoding}
    reader = LimitedReader("histories", path, limits, **chosen).named(path)
    reader.is_history = True
    return reader


def open_here(path: Path, folder: Path, form: str | None, largest: int | None = None, *, zipped: bool) -> Reader:
    """Open a listening history, an archive of them or a JSON document in this process: that with limits.

    `folder`: for unpacked files. `largest`: the most bytes of a history, unpacked. Raises Failure if it cannot be read.
    """
    if zipped:
        return Archive(path, folder, lambda member: _history(member, form), largest)
    if largest is not None:
        with closing(Lines(path)) as lines:
            if lines.measure(largest + 1) > largest:
                raise Failure(f"{path} has more than {largest // 2**20} MiB, unpacked.")
    if form == readers.DOCUMENT:
        return Table(path)
    return open_history(form or detection.history_of(path) or "", path)


def _history(member: Path, form: str | None) -> Reader | None:
    """Open a file that was unpacked from an archive. Return None if it is not a listening history."""
    if found := form or detection.history_of(member):
        return open_history(found, member)
    with closing(Lines(member)) as lines:
        lines.measure(1)  # as nothing tells what a damaged file was
    return None
