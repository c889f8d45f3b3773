"""Listening histories exported by other services: detect the format of a file, and convert its plays to rows."""

from collections.abc import Callable
from pathlib import Path

from musicsvc.errors import Failure
from musicsvc.store.importing.files import formats, readers
from musicsvc.store.importing.files.histories import archives, detection
from musicsvc.store.importing.files.histories.lastfm import LastfmCsv, LastfmPages, LastfmToCsv
from musicsvc.store.importing.files.histories.listenbrainz import ListenBrainz
from musicsvc.store.importing.files.histories.logs import LibreFm, PanoScrobbler, Rockbox, Spinitron
from musicsvc.store.importing.files.histories.maloja import Maloja
from musicsvc.store.importing.files.histories.spotify import SpotifyAccount, SpotifyExtended
from musicsvc.store.importing.files.records import Reader

FORMATS: dict[str, Callable[[Path], Reader]] = {
    "listenbrainz": ListenBrainz,
    "maloja": Maloja,
    "spotify": SpotifyExtended,
    "spotify-account": SpotifyAccount,
    "lastfm": LastfmPages,
    "lastfm-csv": LastfmCsv,
    "lastfm-to-csv": LastfmToCsv,
    "librefm": LibreFm,
    "rockbox": Rockbox,
    "panoscrobbler": PanoScrobbler,
    "spinitron": Spinitron,
}


def is_history(path: Path, form: str | None = None, *, mapped: bool = False) -> bool:
    """Return True if the file is a listening history in another service's format, False if it is a plain table.

    If `mapped` is set (the user maps columns to fields), it is a table. Raises Failure if the file cannot be read.
    """
    if form is not None or mapped:
        return form is not None and form not in formats.FORMATS
    kind = formats.kind_of(path)
    return kind is formats.ARCHIVE or (kind is None and detection.history_of(path) is not None)


def open_file(path: Path, form: str | None = None, sheet: str | None = None, *, mapped: bool = False) -> Reader:
    """Open the file in the format `form`; if it is None, detect the format. Raises Failure for bad files.

    `mapped`: the user maps columns to fields, so the file is a plain table. `sheet`: see `readers.open_file`.
    """
    if not is_history(path, form, mapped=mapped):
        return readers.open_file(path, form, sheet)
    if form is not None and form not in FORMATS:
        raise Failure(f"There is no format {form}. The formats are {', '.join([*formats.FORMATS, *FORMATS])}.")
    if formats.kind_of(path) is formats.ARCHIVE:
        return archives.Archive(path, lambda member: _history(member, form)).named(path)
    return FORMATS[form or detection.history_of(path) or ""](path).named(path)


def _history(member: Path, form: str | None) -> Reader | None:
    """Open a file that was unpacked from an archive. Return None if it is not a listening history."""
    found = form or detection.history_of(member)
    return FORMATS[found](member) if found else None
