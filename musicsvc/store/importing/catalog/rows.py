"""Validate rows of a catalog file (docs/import.md)."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from musicsvc.store.catalog import genres, identifiers
from musicsvc.store.importing import values
from musicsvc.store.importing.columns import Cells
from musicsvc.store.importing.runner import RefusedError

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
WORD_LENGTH = 60
MOST_ARTISTS = 50
MOST_TAGS = 20
LONGEST = 86_400_000
SLOWEST, FASTEST = 20, 400

IGNORED = "playlists_ignored"  # a note that counts although its row is refused
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


def parse(line: int, cells: Mapping[str, list[Any]]) -> CatalogRow:
    """Validate a row of a catalog file. Raises RefusedError with all faulty fields."""
    row = Cells(cells)
    ignored = (IGNORED,) if any(row.first(field) is not None for field in LATER) else ()
    notes = [*ignored]
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
    _require_sound(row, ignored)
    return found


def _require_sound(row: Cells, notes: tuple[str, ...]) -> None:
    """Raise RefusedError with all faults of the row, counted as a refusal of the kind of the first faulty field."""
    if faults := [field for field in FIELDS if field in row.faults]:
        reason = "; ".join(f"{field} {row.faults[field]}" for field in faults)
        raise RefusedError(reason, FIELDS[faults[0]], notes=notes)


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
    tempo = values.rounded(number) if SLOWEST - 1 < number < FASTEST + 1 else 0
    if not SLOWEST <= tempo <= FASTEST:
        notes.append("bpm_dropped")
        return None
    return tempo


_slug = lru_cache(1024)(genres.slug)


def _genres(row: Cells) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in row.several("genre", WORD_LENGTH):
        slug = _slug(name)
        row.refuse("genre", "must contain a letter or a digit", when=not slug)
        found.setdefault(slug, name)
    return found
