"""The formats of listening histories, each with its reader and with what tells its files from others."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from musicsvc.clock import SECOND
from musicsvc.store.importing.cells import times
from musicsvc.store.importing.files import formats
from musicsvc.store.importing.files.histories import logs, services
from musicsvc.store.importing.files.histories.documents import Converted, Document, Values
from musicsvc.store.importing.files.records import Reader, Record, Through
from musicsvc.store.importing.files.texts import CsvReader, JsonLinesReader

MINUTE = re.compile(r"[0-9]{1,2} [A-Z][a-z]{2} [0-9]{4},? [0-9]{2}:[0-9]{2}")
CELLS = 4
# No service kept histories before: players whose clock was not set, and tools that know no time, write 1970 or 1980.
OLDEST = 1_033_430_400 * SECOND  # 1 October 2002


class History(NamedTuple):
    """A format. `keys`: sets of keys, one of which a JSON file has at its beginning, which is one of the signs `first`.

    `header`: whether a row is the first one of a table in this format, its cells divided by one of the `separators`.
    `heading`: the beginning of a text file. `to_minute`: its times are cut to the minute.
    """

    open: Callable[[Path], Reader]
    keys: tuple[str, ...] = ()
    first: str = "{"
    header: Callable[[Sequence[str]], bool] = lambda _: False
    separators: str = ","
    heading: str | None = None
    to_minute: bool = False
    values: Values | None = None  # that read a row, if tables have its entries


def _columns(*names: str) -> Callable[[Sequence[str]], bool]:
    """Return a function that tells whether a header has all these columns, in any case."""
    return lambda row: {*names} <= {cell.lower() for cell in row}


def _json(entries: Callable[[Any], list[Any] | None], values: Values, what: str, *keys: str, **more: Any) -> History:
    """Return a format of files that are one JSON value."""
    return History(partial(Document, entries, values, what), keys, **more)


def _csv(values: Values, header: Callable[[Sequence[str]], bool], separator: str = ",") -> History:
    return History(lambda path: Converted(values, CsvReader(path)), header=header, separators=separator, values=values)


def _also_csv(document: History, values: Values) -> History:
    """Return a format of JSON whose files may also have an entry per line, or be tables, as others convert them."""
    keys = {*document.keys[0].split()}

    def either(path: Path) -> Reader:
        first = formats.decoded(formats.head_of(path)[0]).lstrip()[:1]
        if first == "[":
            return document.open(path)
        return Converted(values, JsonLinesReader(path) if first == "{" else CsvReader(path))

    return document._replace(
        open=either, first="[{", header=lambda row: keys <= {*row}, separators=",;\t", values=values
    )


SPOTIFY = "a Spotify streaming history: it must be a JSON array"
SPOTIFY_KEYS, ACCOUNT_KEYS = "master_metadata_track_name ms_played", "endTime msPlayed trackName"
OWN_KEYS = "date listener external_id client_id track_id isrc duration duration_ms listened_ms ms_played"
LASTFM_KEYS = "#text artist track image"
LASTFM = "an export of the recent tracks of Last.fm"
FORMATS: dict[str, History] = {  # the first one that a file may be is its format
    "spotify": _also_csv(_json(services.array, services.spotify, SPOTIFY, SPOTIFY_KEYS, first="["), services.spotify),
    "spotify-account": _also_csv(
        _json(services.array, services.spotify_account, SPOTIFY, ACCOUNT_KEYS, first="[", to_minute=True),
        services.spotify_account,
    ),
    "listenbrainz": History(services.listenbrainz, ("track_metadata",), "[{"),
    "lastfm": _json(services.lastfm_tracks, services.lastfm, LASTFM, LASTFM_KEYS, "#text artist track uts", first="[{"),
    "panoscrobbler": _also_csv(
        History(lambda path: Converted(services.panoscrobbler, JsonLinesReader(path)), ("timeMs track artist",)),
        services.panoscrobbler,
    ),
    "koito": _json(services.listed("listens"), services.koito, "a Koito export", "listens listened_at aliases"),
    "lastfmstats": _json(
        services.listed("scrobbles"), services.lastfmstats, "of lastfmstats.com", "username scrobbles artist date"
    ),
    "lastfmstats-csv": _csv(logs.lastfmstats_csv, lambda row: {"Artist", "AlbumId", "Track"} < {*row}, ";"),
    "maloja": _json(
        services.listed("scrobbles", "list"), services.maloja, "a Maloja export", "scrobbles", "list time track artists"
    ),
    "youtube-music": _json(
        services.array, services.youtube_music, "a history of YouTube", "header title titleUrl time", first="["
    ),
    "apple-music": _csv(
        services.apple_music, _columns("event start timestamp", "event end timestamp", "play duration milliseconds")
    ),
    "lastfm-csv": History(partial(logs.table, "Last.fm", logs.LASTFM), header=_columns("uts", "artist", "track")),
    "lastfm-to-csv": History(
        logs.LastfmToCsv, header=lambda row: len(row) == CELLS and bool(MINUTE.fullmatch(row[-1])), to_minute=True
    ),
    "librefm": History(
        partial(logs.table, "Libre.fm", logs.LIBRE_FM),
        # A table of our own, with more columns, is none.
        header=lambda row: (
            _columns("artist", "track", "time")(row) and {*OWN_KEYS.split()}.isdisjoint(map(str.lower, row))
        ),
    ),
    "rockbox": History(logs.Rockbox, heading="#AUDIOSCROBBLER/"),
    "spinitron": History(
        partial(logs.table, "Spinitron", logs.SPINITRON),
        header=lambda row: row[:1] == ["Playlist Title"] or _columns("date-time", "artist", "song")(row),
    ),
}


def open_history(form: str, path: Path) -> Reader:
    """Open a listening history in this format. Raises Failure if it is in another one."""
    return _Dated(FORMATS[form].open(path), to_minute=FORMATS[form].to_minute)


def as_history(table: Reader) -> Reader:
    """Return a reader of the history that a workbook has as a table, or the table itself if it is none."""
    for each in FORMATS.values():
        if each.values is not None and table.columns is not None and each.header(table.columns):
            return _Dated(Converted(each.values, table), to_minute=each.to_minute)
    return table


class _Dated(Through):
    """Leaves out the entries of a history whose time is unknown, and says whether times are cut to the minute."""

    def __init__(self, reader: Reader, *, to_minute: bool) -> None:
        super().__init__(reader)
        self.is_history = True
        self._to_minute = to_minute

    def changed(self, record: Record) -> Record:
        if record.fault or record.note:
            return record
        if _is_unknown(record.values["played_at"]):
            return Record(record.line, {}, note="no_time")
        return record._replace(to_minute=True) if self._to_minute else record


def _is_unknown(time: Any) -> bool:
    try:
        return (times.instant(time) or 0) < OLDEST
    except ValueError as error:
        return str(error) == times.SERIAL  # on the first of January 1970
