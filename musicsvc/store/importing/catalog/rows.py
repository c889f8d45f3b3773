"""Validate rows of a catalog file (docs/import.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from musicsvc.store.catalog import genres, identifiers
from musicsvc.store.importing import values

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
WORD_LENGTH = 60
MOST_ARTISTS = 50
MOST_TAGS = 20
LONGEST = 86_400_000
SLOWEST, FASTEST = 20, 400

REQUIRED = ("track", "artist")
SEVERAL = ("artist", "genre", "tags", "album_artist")
LATER = ("playlist", "playlist_external_id")
# Each field, and the kind of item that is counted as refused if the field is faulty.
FIELDS = {
    "external_id": "tracks",
    "track": "tracks",
    "artist": "artists",
    "album": "albums",
    "album_external_id": "albums",
    "release_date": "tracks",
    "duration_ms": "tracks",
    "genre": "genres",
    "tags": "tracks",
    "bpm": "tracks",
    "key": "tracks",
    "scale": "tracks",
    "image": "tracks",
    "description": "tracks",
    "isrc": "tracks",
    "track_number": "tracks",
    "disc_number": "tracks",
    "explicit": "tracks",
    "album_artist": "albums",
    "upc": "albums",
    "label": "albums",
    "playlist": "tracks",
    "playlist_external_id": "tracks",
}


@dataclass(frozen=True, slots=True)
class CatalogRow:
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


class RefusedError(Exception):
    """The row of a catalog file is invalid. The row is counted as refused under `kind`, such as `tracks`."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field} {reason}" for field, reason in faults.items()))
        self.kind = FIELDS[next(iter(faults))]


class Cells:
    """The cells of one row by field. If a cell is invalid, parsing adds the reason to `faults`, by field."""

    def __init__(self, cells: Mapping[str, list[Any]]) -> None:
        self._cells = cells
        self.faults: dict[str, str] = {}

    def one(self, field: str, parse: Callable[[Any], Any]) -> Any:
        """Return the parsed cell of the field, or None if it is blank or invalid."""
        try:
            return parse(self._cells.get(field, [None])[0])
        except ValueError as error:
            self.faults[field] = str(error)
            return None

    def text(self, field: str, longest: int = NAME_LENGTH) -> str | None:
        found: str | None = self.one(field, lambda value: values.text(value, longest))
        return found

    def several(self, field: str, longest: int) -> list[str]:
        """Return the distinct texts in all columns of the field, or an empty list if one text is invalid."""
        try:
            found = [part for cell in self._cells.get(field, ()) for part in values.several(cell, longest)]
        except ValueError as error:
            self.faults[field] = str(error)
            return []
        return list(dict.fromkeys(found))

    def refuse(self, field: str, reason: str, *, when: bool) -> None:
        """If `when` is true, add `reason` to the faults of the row, unless the field already has a fault."""
        if when:
            self.faults.setdefault(field, reason)


def parse(line: int, cells: Mapping[str, list[Any]]) -> CatalogRow:
    """Validate a row of a catalog file. Raises RefusedError with all faulty fields."""
    row = Cells(cells)
    notes: list[str] = []
    found = CatalogRow(
        line=line,
        external_id=row.text("external_id"),
        name=row.text("track") or "",
        artists=tuple(row.several("artist", NAME_LENGTH)),
        album=row.text("album"),
        album_external_id=row.text("album_external_id"),
        release_date=_release_date(row, notes),
        duration=row.one("duration_ms", lambda value: values.whole(value, 0, LONGEST)),
        genres=_genres(row),
        tags=tuple(row.several("tags", WORD_LENGTH)),
        bpm=_bpm(row, notes),
        key=row.one("key", values.key),
        scale=row.one("scale", values.scale),
        image=row.one("image", values.url),
        description=row.text("description", DESCRIPTION_LENGTH),
        isrc=row.one("isrc", values.isrc),
        track_number=row.one("track_number", lambda value: values.whole(value, 1, identifiers.MOST_TRACKS)),
        disc_number=row.one("disc_number", lambda value: values.whole(value, 1, identifiers.MOST_DISCS)),
        explicit=row.one("explicit", values.flag),
        album_artists=tuple(row.several("album_artist", NAME_LENGTH)),
        upc=row.one("upc", values.upc),
        label=row.text("label"),
        notes=tuple(notes),
    )
    row.refuse("track", "is missing", when=not found.name)
    row.refuse("artist", "is missing", when=not found.artists)
    row.refuse("artist", f"names more than {MOST_ARTISTS} artists", when=len(found.artists) > MOST_ARTISTS)
    row.refuse("album_artist", f"names more than {MOST_ARTISTS} artists", when=len(found.album_artists) > MOST_ARTISTS)
    row.refuse("tags", f"holds more than {MOST_TAGS} tags", when=len(found.tags) > MOST_TAGS)
    nameless = found.album_external_id is not None and found.album is None
    row.refuse("album", "is missing; album_external_id needs the name too", when=nameless)
    if row.faults:
        raise RefusedError({field: row.faults[field] for field in FIELDS if field in row.faults})
    return found


def _release_date(row: Cells, notes: list[str]) -> str | None:
    day: values.Day | None = row.one("release_date", values.day)
    if day is None:
        return None
    if day.padded:
        notes.append(f"{day.padded}_padded")
    return day.date


def _bpm(row: Cells, notes: list[str]) -> int | None:
    number = row.one("bpm", values.number)
    if number is None:
        return None
    if not SLOWEST - 1 < number < FASTEST + 1 or not SLOWEST <= values.rounded(number) <= FASTEST:
        notes.append("bpm_dropped")
        return None
    return values.rounded(number)


def _genres(row: Cells) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in row.several("genre", WORD_LENGTH):
        slug = genres.slug(name)
        row.refuse("genre", "must contain a letter or a digit", when=not slug)
        found.setdefault(slug, name)
    return found
