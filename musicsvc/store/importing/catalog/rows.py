"""Validate rows of a catalog file (docs/import.md)."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import lru_cache, partial
from typing import NamedTuple

from musicsvc.store.catalog import genres, identifiers
from musicsvc.store.importing import values
from musicsvc.store.importing.columns import Cells, Field
from musicsvc.store.importing.runner import RefusedError

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
WORD_LENGTH = 60
MOST_ARTISTS = 50
MOST_TAGS = 20
SLOWEST, FASTEST = 20, 400

IGNORED = "playlists_ignored"  # a note that counts although its row is refused
REQUIRED = {"track": "", "artist": ", or the artist of all tracks with --artist NAME"}
LATER = ("playlist", "playlist_external_id")
CODE = partial(values.text, longest=NAME_LENGTH)
NAME = partial(values.name, longest=NAME_LENGTH)
NAMES = partial(values.texts, longest=NAME_LENGTH)
WORDS = partial(values.texts, longest=WORD_LENGTH)
FIELDS = {
    "external_id": Field(CODE, counted="tracks", examples=("T-1", "T-2")),
    "track": Field(NAME, is_name=True, counted="tracks", examples=("Allegro moderato", "Scherzo")),
    "artist": Field(
        NAMES,
        several=True,
        is_name=True,
        counted="artists",
        examples=("Clara Schumann", "Clara Schumann; Fanny Hensel"),
    ),
    "album": Field(NAME, is_name=True, counted="albums", examples=("Trios", "Trios")),
    "album_external_id": Field(CODE, counted="albums", examples=("A-1", "A-1")),
    "release_date": Field(values.day, counted="tracks", examples=("2026-10-15", "2026-10-15")),
    "duration_ms": Field(values.milliseconds, counted="tracks", examples=("692000", "308500")),
    "genre": Field(
        WORDS, several=True, is_name=True, counted="genres", examples=("Classical", "Classical; Chamber music")
    ),
    "tags": Field(WORDS, several=True, is_name=True, counted="tracks", examples=("piano; strings", "piano")),
    "bpm": Field(values.number, counted="tracks", examples=("96", "132")),
    "key": Field(values.key, counted="tracks", examples=("G", "Bb")),
    "scale": Field(values.scale, counted="tracks", examples=("Minor", "Major")),
    "image": Field(
        values.url, counted="tracks", examples=("https://example.test/trios.jpg", "https://example.test/trios.jpg")
    ),
    "description": Field(
        partial(values.text, longest=DESCRIPTION_LENGTH), counted="tracks", examples=("The first movement", "")
    ),
    "isrc": Field(values.isrc, counted="tracks", examples=("XXXXX2600001", "XX-XXX-26-00002")),
    "track_number": Field(
        partial(values.whole, lowest=1, highest=identifiers.MOST_TRACKS), counted="tracks", examples=("1", "2")
    ),
    "disc_number": Field(
        partial(values.whole, lowest=1, highest=identifiers.MOST_DISCS), counted="tracks", examples=("1", "1")
    ),
    "explicit": Field(values.flag, counted="tracks", examples=("no", "no")),
    "album_artist": Field(
        NAMES, several=True, is_name=True, counted="albums", examples=("Clara Schumann", "Clara Schumann")
    ),
    "upc": Field(values.upc, counted="albums", examples=("012345678905", "012345678905")),
    "label": Field(NAME, is_name=True, counted="albums", examples=("Example Records", "Example Records")),
    "playlist": Field(lambda cell: cell, counted="tracks"),
    "playlist_external_id": Field(lambda cell: cell, counted="tracks"),
}
TOO_MANY_ARTISTS = f"names more than {MOST_ARTISTS} artists"
TOO_MANY_TAGS = f"holds more than {MOST_TAGS} tags"


class CatalogRow(NamedTuple):
    """A validated row of a catalog file. Blank fields are None or empty."""

    line: int
    name: str
    artists: tuple[str, ...]
    external_id: str | None
    album: str | None
    album_external_id: str | None
    release_date: str | None
    duration: int | None
    bpm: int | None
    key: str | None
    scale: str | None
    image: str | None
    description: str | None
    isrc: str | None
    track_number: int | None
    disc_number: int | None
    explicit: bool | None
    album_artists: tuple[str, ...]  # those of the album before the artists of its rows; the first identifies it
    upc: str | None
    label: str | None
    genres: Mapping[str, str]  # display names by slug
    tags: tuple[str, ...]
    notes: tuple[str, ...]  # keys of summary.NOTES

    @property
    def album_credits(self) -> tuple[str, ...]:
        """The artists of the row's album, in order. An album without external id is found by name and first artist."""
        return tuple(dict.fromkeys((*self.album_artists, *self.artists)))


def parse(line: int, cells: Cells, artist: str | None = None) -> CatalogRow:
    """Validate a row of a catalog file. Raises RefusedError with all faulty fields. `artist`: of a row without one."""
    read = cells.values.get
    notes = [*(ignored := (IGNORED,) if any(field in cells.values for field in LATER) else ())]
    if not read("album") and (read("upc") or read("label")):
        notes.append("albumless")
    found = CatalogRow(
        line=line,
        external_id=read("external_id"),
        name=read("track") or "",
        artists=read("artist") or ((artist,) if artist else ()),
        album=read("album"),
        album_external_id=read("album_external_id"),
        release_date=_release_date(read("release_date"), notes),
        duration=read("duration_ms"),
        genres=_genres(read("genre") or (), cells),
        tags=read("tags") or (),
        bpm=_bpm(read("bpm"), notes),
        key=read("key"),
        scale=read("scale"),
        image=read("image"),
        description=read("description"),
        isrc=read("isrc"),
        track_number=read("track_number"),
        disc_number=read("disc_number"),
        explicit=read("explicit"),
        album_artists=read("album_artist") or (),
        upc=read("upc"),
        label=read("label"),
        notes=tuple(notes),
    )
    _refuse(found, cells)
    if cells.faults:  # counted as a refusal of the kind of the first faulty field
        counted = next(each.counted for field, each in FIELDS.items() if field in cells.faults)
        raise RefusedError(cells.reasons(FIELDS), counted, notes=ignored)
    return found


def _refuse(found: CatalogRow, cells: Cells) -> None:
    cells.refuse("track", "is missing", when=not found.name)
    cells.refuse("artist", "is missing", when=not found.artists)
    for field, names in (("artist", found.artists), ("album_artist", found.album_artists)):
        cells.refuse(field, TOO_MANY_ARTISTS, when=len(names) > MOST_ARTISTS)
    cells.refuse("tags", TOO_MANY_TAGS, when=len(found.tags) > MOST_TAGS)
    nameless = found.album_external_id is not None and found.album is None
    cells.refuse("album", "is missing; album_external_id needs the name too", when=nameless)


def _release_date(day: values.Day | None, notes: list[str]) -> str | None:
    if day is None:
        return None
    if day.padded:
        notes.append(f"{day.padded}_padded")
    return day.date


def _bpm(number: Decimal | None, notes: list[str]) -> int | None:
    if number is None:
        return None
    tempo = values.rounded(number) if SLOWEST - 1 < number < FASTEST + 1 else 0
    if not SLOWEST <= tempo <= FASTEST:
        notes.append("bpm_dropped")
        return None
    return tempo


_slug = lru_cache(1024)(genres.slug)


def _genres(names: Collection[str], cells: Cells) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        slug = _slug(name)
        cells.refuse("genre", "must contain a letter or a digit", when=not slug)
        found.setdefault(slug, name)
    return found
