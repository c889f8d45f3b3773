"""Requests and responses of artists, albums and tracks (docs/api.md, Artists, albums, tracks)."""

from typing import Annotated, Any, ClassVar, Generic, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from musicsvc.server.schemas.answers import Answer, Date, Paginator, Success, T, Timestamp, Uri
from musicsvc.server.schemas.catalog_fields import changing, requiring, showing
from musicsvc.server.schemas.fields import SEARCH_NAMES, Body, NamePart, Pages, Query
from musicsvc.store.catalog import albums, artists

PARTS = ("tags", "genres", "artists", "tracks")
PART = rf"\s*(({'|'.join(PARTS)})\s*)?"
PARTS_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": f"^{PART}(,{PART})*$",
    "examples": ["genres,tags"],
    "description": f"Parts to add to the album, separated by commas: {', '.join(PARTS)}.",
}


def _parts(value: str) -> frozenset[str]:
    names = [name.strip() for name in value.split(",")]
    unknown = [name for name in names if name and name not in PARTS]
    if unknown:
        raise ValueError(f"Must be one or more of {', '.join(PARTS)}, separated by commas.")
    return frozenset(filter(None, names))


@changing("artist")
class ArtistEdit(Body):
    """Changes of an artist. Fields that are not sent stay; null removes a description or image."""


@requiring("artist")
class ArtistIn(ArtistEdit):
    """A new artist."""


@changing("album")
class AlbumEdit(Body):
    """Changes of an album. Fields that are not sent stay; null empties all but `name` and `artist_id`."""

    references: ClassVar = {"artist_id": artists.missing}
    subjects: ClassVar = {"artist_id": "artists"}


@requiring("album")
class AlbumIn(AlbumEdit):
    """A new album of an artist that the caller manages."""


@changing("track")
class TrackEdit(Body):
    """Changes of a track. Fields that are not sent stay; null empties those that a new track need not have.

    `currency`, `licensing_type` and `exclusive_status` always have a value, so null leaves them as they are.
    """

    references: ClassVar = {"artists": artists.missing, "album_id": albums.missing}
    subjects: ClassVar = {"album_id": "albums", "artists": "artists"}


@requiring("track")
class TrackIn(TrackEdit):
    """A new track; the caller must manage one of its artists."""


class AlbumParts(Query):
    """Query string that selects the optional parts of an album."""

    with_: Annotated[frozenset[str], BeforeValidator(_parts), WithJsonSchema(PARTS_SCHEMA)] = Field(
        frozenset(), alias="with"
    )


class AlbumPages(Pages):
    """Page number and size for albums and artists; the original specification calls the size `per_page`."""

    size_name: ClassVar[str] = "per_page"


class ArtistPages(AlbumPages):
    """Page number and size for artists, and a text to search for in their names."""

    other_names: ClassVar = Pages.other_names | SEARCH_NAMES

    q: NamePart = None


class Genre(Answer):
    """A genre; `name` is its slug, `display_name` the name to show."""

    id: int
    name: str = Field(examples=["ragtime"])
    display_name: str = Field(examples=["Ragtime"])
    model_type: Literal["genre"]


class Tag(Answer):
    """A tag; `name` can be any text."""

    id: int
    name: str = Field(examples=["syncopated"])


class ArtistNested(Answer):
    """An artist, as included in another resource."""

    id: int
    name: str = Field(examples=["Scott Joplin"])
    image_small: Uri | None
    verified: bool


class ArtistPublic(Answer):
    """An artist, as returned to callers without a token."""

    id: int
    name: str = Field(examples=["Scott Joplin"])
    model_type: Literal["artist"]


class Artist(ArtistNested):
    """An artist, as returned to callers with a token."""

    model_type: Literal["artist"]
    created_at: Timestamp
    albums_count: int
    tracks_count: int


class TrackNested(Answer):
    """A track, as included in another resource."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    release_date: Date | None
    image: Uri | None
    duration: int = Field(examples=[184_250], description="Milliseconds.")
    description: str | None = Field(examples=["The first ragtime that the composer published."])
    artists: list[ArtistNested]


class TrackPublic(Answer):
    """A track, as returned to callers without a token."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    image: Uri | None
    created_at: Timestamp
    model_type: Literal["track"]
    duration_text: str = Field(examples=["3:04"], description="`m:ss`, from one hour on `h:mm:ss`.")


@showing("track", "sound")
class TrackWithSound(TrackNested):
    """A track, up to the fields that describe its sound."""

    model_type: Literal["track"]
    created_at: Timestamp
    duration_text: str = Field(examples=["3:04"], description="`m:ss`, from one hour on `h:mm:ss`.")


@showing("track", "sale")
class TrackWithSale(TrackWithSound):
    """A track, up to the fields that say how it is sold."""

    plays: int
    likes_count: int
    reposts_count: int


@showing("track", "last")
class Track(TrackWithSale):
    """A track, as returned to callers with a token."""

    genres: list[Genre]
    tags: list[Tag]
    album_id: int | None


class AlbumPublic(Answer):
    """An album, as returned to callers without a token."""

    id: int
    name: str = Field(examples=["Das Wohltemperierte Klavier"])
    model_type: Literal["album"]
    image: Uri | None
    release_date: Date | None


@showing("album", "last")
class AlbumShown(Answer):
    """An album with the fields that it always has."""

    id: int
    name: str = Field(examples=["Das Wohltemperierte Klavier"])
    image: Uri | None
    release_date: Date | None
    description: str | None = Field(examples=["Book one."])
    tracks: list[TrackNested]
    artists: list[ArtistNested]
    model_type: Literal["album"]
    created_at: Timestamp
    plays: int


class Album(AlbumShown):
    """An album, as returned to callers with a token; the query parameter `with` adds `genres` and `tags`."""

    genres: list[Genre] = Field([])
    tags: list[Tag] = Field([])


class OfAlbums(Success, Generic[T]):
    """A response with one page of albums under `albums`."""

    albums: Paginator[T]


class OfArtists(Success, Generic[T]):
    """A response with one page of artists under `artists`."""

    artists: Paginator[T]


class Fingerprint(Success):
    """A response with the status of a track's fingerprint."""

    fingerprint_status: Literal["pending", "processing", "completed", "failed"]
