"""Validate rows of a catalog file (docs/import.md)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from musicsvc.store.catalog import genres
from musicsvc.store.catalog.fields import ALBUM, COLUMNS, TRACK, Kind
from musicsvc.store.catalog.fields import Field as CatalogField
from musicsvc.store.importing.cells import codes, dates, durations, names, words
from musicsvc.store.importing.cells.notations import Fit, Parse
from musicsvc.store.importing.cells.numbers import fit_places, place, whole
from musicsvc.store.importing.columns import Cells, Field
from musicsvc.store.importing.files.records import Record
from musicsvc.store.importing.runner import RefusedError
from musicsvc.store.importing.summary import LeftOutCell
from musicsvc.wording import LONGEST_NAME, cut

DESCRIPTION_LENGTH = 10_000
WORD_LENGTH = 60
MOST_ARTISTS = 50
MOST_TAGS = 20
TOO_MANY_TAGS = f"of a track are at most {MOST_TAGS}"

IGNORED = "playlists_ignored"  # a note that counts although its row is refused
DELETED, NO_SONG, TOTAL = "deleted", "no_song", "total"  # notes in place of a row
TOTALS = {"total", "totals", "grand total", "subtotal", "gesamt", "gesamtsumme", "summe"}  # below reports of sales
VARIOUS = {"various artists", "various", "va", "v.a.", "diverse", "verschiedene interpreten"}  # no artist
SOLD = {"album", "package", "bundle", "merch", "subscription"}  # besides tracks, in reports of DistroKid and Bandcamp
OTHER_VERSION = "has another version than the earlier row that it repeats; write the version into the name"
REQUIRED = {"track": "", "artist": ", or the artist of all tracks with --artist NAME"}
LATER = ("playlist", "playlist_external_id")
IDENTIFYING = ("external_id", "track", "artist", "album", "album_external_id", "album_artist")
NAME = partial(names.name, longest=LONGEST_NAME)
NAMES = partial(names.texts, longest=LONGEST_NAME)
WORDS = partial(names.texts, longest=WORD_LENGTH)
# The parsers of cells by the kind of the field that they fill; numbers have bounds. Others fill no field of the API.
PARSERS: Mapping[Kind, Parse] = {
    "text": NAME,
    "paragraph": partial(names.text, longest=DESCRIPTION_LENGTH),
    "artists": NAMES,
    "genre": WORDS,
    "words": WORDS,
    "date": dates.day,
    "length": durations.milliseconds,
    "key": words.key,
    "scale": words.scale,
    "url": names.url,
    "isrc": codes.isrc,
    "upc": codes.upc,
    "yes or no": words.flag,
}
# How the columns of some kinds are read, which their first rows decide.
FITS: Mapping[Kind, Fit] = {"date": dates.fit, "length": durations.fit}
OTHERS: Mapping[str, Parse] = {
    "external_id": partial(codes.identifier, noun="track"),
    "item_type": NAME,
    "album": NAME,
    "album_external_id": partial(codes.identifier, noun="album"),
    "album_artist": NAMES,
    "featured_artist": NAMES,
    **dict.fromkeys(LATER, lambda cell: cell),
}
FILLED = {each.name: each for each in (*ALBUM, *TRACK)}


def _parser(name: str) -> Parse:
    if name in OTHERS:
        return OTHERS[name]
    field = _filled(name)
    low, high = field.bounds
    if field.kind == "tempo":
        return partial(whole, lowest=low, highest=high, first=True)
    return partial(place, lowest=low, highest=high) if field.kind == "number" else PARSERS[field.kind]


def _filled(name: str) -> CatalogField:
    """Return the field of a track or album that a column fills."""
    return FILLED[COLUMNS[name].fills or name]


def _field(name: str) -> Field:
    parse_cell, column = _parser(name), COLUMNS[name]
    several, is_name = parse_cell in {NAMES, WORDS}, parse_cell in {NAME, NAMES, WORDS}
    optional, fit = name not in IDENTIFYING, None if name in OTHERS else FITS.get(_filled(name).kind)
    if name == "track_number":
        fit = partial(fit_places, parse_cell)
    return Field(parse_cell, several, is_name, column.counted, column.examples, optional, fit)


FIELDS = {name: _field(name) for name in COLUMNS}
# The columns that fill those of a track or album: the columns of the file by field.
PLAIN = {_filled(name).name: name for name in COLUMNS if name not in {*OTHERS, *REQUIRED} and _filled(name).is_column}
OF_ALBUM = tuple(field for field, name in PLAIN.items() if COLUMNS[name].counted == "albums")
OF_BOTH = ("release_date", "image")  # a cell sets that of the track, and that of the album if it has none yet
OF_TRACK = tuple(field for field in PLAIN if field not in OF_ALBUM)
CELLS_OF_TRACK = [(field, PLAIN[field]) for field in OF_TRACK]
CELLS_OF_ALBUM = [(field, PLAIN[field]) for field in OF_ALBUM]
TOO_MANY_ARTISTS = f"names more than {MOST_ARTISTS} artists"


class CatalogRow(NamedTuple):
    """A validated row of a catalog file. Blank fields are None or empty."""

    line: int
    name: str
    artists: tuple[str, ...]
    external_id: str | None
    album: str | None
    album_external_id: str | None
    album_artists: tuple[str, ...]  # those of the album before the artists of its rows; the first identifies it
    of_track: Mapping[str, Any]  # the values of the row for fields in OF_TRACK
    of_album: Mapping[str, Any]  # the same for fields in OF_BOTH and OF_ALBUM
    genres: Mapping[str, str]  # display names by slug
    tags: tuple[str, ...]
    notes: tuple[str, ...]  # keys of summary.NOTES
    isrc: str | None
    upc: str | None  # by which the row names its album, without zeros in front; an external id counts more
    album_credits: tuple[str, ...]  # the album's artists; one without external id is found by name and first artist


def parse(line: int, cells: Cells, artist: str | None = None) -> CatalogRow:
    """Validate a row of a catalog file. Raises RefusedError with all faulty fields. `artist`: of a row without one."""
    read = cells.values.get
    ignored = () if cells.values.keys().isdisjoint(LATER) else (IGNORED,)
    notes = [*ignored]
    album, album_id = read("album"), read("album_external_id")
    if not album:
        for name in (name for _, name in CELLS_OF_ALBUM if read(name)):
            cells.leave_out(name, "needs an album", read(name))
    of_track = {field: value for field, name in CELLS_OF_TRACK if (value := read(name)) is not None}
    if day := of_track.get("release_date"):
        of_track["release_date"] = day.date
        if day.date is None:
            del of_track["release_date"]
        if day.padded:
            notes.append(f"{day.padded}_padded")
    if (key := of_track.get("key")) is not None:
        of_track["key"] = str(key)  # for the drivers of databases
        if key.scale is not None:
            of_track.setdefault("scale", key.scale)
    of_album = {field: of_track[field] for field in OF_BOTH if field in of_track}
    of_album |= {field: value for field, name in CELLS_OF_ALBUM if (value := read(name)) is not None}
    first = read("album_artist") or ()
    artists = artists_of(cells, artist) or artists_of_album(cells, notes)
    genres = _genres(given, cells) if (given := read("genre")) else {}
    names = read("track") or "", artists, read("external_id"), album, album_id, first
    code = of_album.get("upc") if album and not album_id else None
    codes = of_track.get("isrc"), code and code.lstrip("0")
    credit = tuple(dict.fromkeys((*first, *artists))) if first else artists
    # A third of the time of a call of the class, of which there is one for each row.
    found = tuple.__new__(
        CatalogRow, (line, *names, of_track, of_album, genres, read("tags") or (), tuple(notes), *codes, credit)
    )
    if cells.faults or not (found.name and artists and (album or album_id is None)) or len(credit) > MOST_ARTISTS:
        _refuse(found, cells)
    if cells.faults:  # counted as a refusal of the kind of the first faulty field
        counted = next(each.counted for field, each in FIELDS.items() if field in cells.faults)
        raise RefusedError(cells.reasons(FIELDS), counted, notes=ignored)
    return found


def artists_of_album(cells: Cells, notes: list[str]) -> tuple[str, ...]:
    """Return the artists of a row that names none, but the artists of its album, and note it."""
    first: tuple[str, ...] = cells.values.get("album_artist") or ()
    if not first or "artist" in cells.faults or not VARIOUS.isdisjoint(map(str.casefold, first)):
        return ()
    notes.append("artist_of_album")
    return artists_of(cells, *first)


def is_total(record: Record, cells: Cells) -> bool:
    """Return True for a row that lacks its track or artist, and has a word for a total."""
    if cells.values.get("track") and cells.values.get("artist"):
        return False
    return any(isinstance(cell, str) and cell.strip(" :").casefold() in TOTALS for cell in record.values.values())


def artists_of(cells: Cells, *others: str | None) -> tuple[str, ...]:
    """Return the artists of a row: the main ones (`others` if it names none), then the featured ones."""
    main: tuple[str, ...] = cells.values.get("artist") or (*filter(None, others),)
    featured = cells.values.get("featured_artist")
    return tuple(dict.fromkeys((*main, *featured))) if main and featured else main


def differing(row: CatalogRow, of_track: Collection[str], of_album: Iterable[str]) -> Iterator[LeftOutCell]:
    """Yield the cells of a row that contradict an earlier row, given as fields of its track and of its album."""
    of_album = [name for name in of_album if name not in OF_BOTH]
    for name, of in chain(zip(of_track, repeat("track")), zip(of_album, repeat("album"))):
        field = PLAIN.get(name) or {"artists": "artist", "name": of}.get(name, name)
        names = {"artist": "; ".join(row.artists), "track": row.name, "album": row.album}
        value = names.get(field) or ({**row.of_track, **row.of_album})[name]
        also = f"; new {field}s come in without the track" if field in {"artist", "album"} and of == "track" else ""
        yield row.line, field, f"differs from an earlier row of the same {of}, which was kept{also}", cut(str(value))


def _refuse(found: CatalogRow, cells: Cells) -> None:
    cells.refuse("track", "is missing", when=not found.name)
    cells.refuse("artist", "is missing", when=not found.artists)
    for field, given in (("artist", found.artists), ("album_artist", found.album_artists)):
        cells.refuse(field, TOO_MANY_ARTISTS, when=len(given) > MOST_ARTISTS)
    nameless = found.album_external_id is not None and found.album is None
    cells.refuse("album", "is missing; album_external_id needs the name too", when=nameless)


def _genres(names: tuple[str, ...], cells: Cells) -> Mapping[str, str]:
    found, others = _slugs(names)
    for name in others:
        cells.leave_out("genre", "must contain a letter or a digit", name)
    return found


@lru_cache(1024)
def _slugs(names: tuple[str, ...]) -> tuple[Mapping[str, str], list[str]]:
    """Return the names of genres by slug, and the names without one."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(genres.slug(name), name)
    return {slug: name for slug, name in found.items() if slug}, [name for name in names if not genres.slug(name)]
