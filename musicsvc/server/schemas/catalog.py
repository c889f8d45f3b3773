"""Requests and responses of artists, albums and tracks (docs/api.md, Artists, albums, tracks)."""

from typing import Annotated, Any, ClassVar, Generic, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, WithJsonSchema

from musicsvc.server.schemas.answers import Answer, Date, Paginator, Success, T, Timestamp, Uri
from musicsvc.server.schemas.catalog_fields import (
    Currency,
    DiscNumber,
    Exclusive,
    GenreName,
    Isrc,
    Key,
    Licensing,
    Price,
    Scale,
    Tags,
    TrackNumber,
    Upc,
)
from musicsvc.server.schemas.fields import (
    SEARCH_NAMES,
    Body,
    Description,
    Id,
    Name,
    NamePart,
    Pages,
    Query,
    ReleaseDate,
    Url,
    require_unique,
)
from musicsvc.store.catalog import albums, artists

MAX_DURATION = 86_400_000
PARTS = ("tags", "genres", "artists", "tracks")
PART = rf"\s*(({'|'.join(PARTS)})\s*)?"
PARTS_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": f"^{PART}(,{PART})*$",
    "examples": ["genres,tags"],
    "description": f"Parts to add to the album, separated by commas: {', '.join(PARTS)}.",
}


Duration = Annotated[int, Field(strict=True, ge=1, le=MAX_DURATION, examples=[98_000], description="Milliseconds.")]
ArtistIds = Annotated[
    list[Id],
    Field(min_length=1, max_length=50, json_schema_extra={"uniqueItems": True}),
    AfterValidator(require_unique),
]


def _parts(value: str) -> frozenset[str]:
    names = [name.strip() for name in value.split(",")]
    unknown = [name for name in names if name and name not in PARTS]
    if unknown:
        raise ValueError(f"Must be one or more of {', '.join(PARTS)}, separated by commas.")
    return frozenset(filter(None, names))


class ArtistEdit(Body):
    """Changes of an artist. Fields that are not sent stay; null removes a description or image."""

    name: Name | None = Field(None, examples=["Clara Schumann"])
    description: Description | None = Field(None, examples=["Pianist and composer, born in Leipzig in 1819."])
    image_small: Url | None = None


class ArtistIn(ArtistEdit):
    """A new artist."""

    name: Name = Field(examples=["Clara Schumann"])


class AlbumEdit(Body):
    """Changes of an album. Fields that are not sent stay; null empties all but `name` and `artist_id`."""

    references: ClassVar = {"artist_id": artists.missing}
    subjects: ClassVar = {"artist_id": "artists"}

    name: Name | None = Field(None, examples=["Notenbüchlein"])
    artist_id: Id | None = Field(None, description="The first artist; the caller must manage it.")
    description: Description | None = Field(None, examples=["Begun in 1725."])
    release_date: ReleaseDate | None = None
    image: Url | None = None
    tags: Tags | None = None
    upc: Upc | None = None
    label: Name | None = Field(None, examples=["Breitkopf"])


class AlbumIn(AlbumEdit):
    """A new album of an artist that the caller manages."""

    name: Name = Field(examples=["Notenbüchlein"])
    artist_id: Id


class TrackEdit(Body):
    """Changes of a track. Fields that are not sent stay; null empties those that a new track need not have.

    `currency`, `licensing_type` and `exclusive_status` always have a value, so null leaves them as they are.
    """

    references: ClassVar = {"artists": artists.missing, "album_id": albums.missing}
    subjects: ClassVar = {"album_id": "albums", "artists": "artists"}

    name: Name | None = Field(None, examples=["Menuett G-Dur"])
    duration: Duration | None = None
    artists: ArtistIds | None = None
    description: Description | None = Field(None, examples=["A minuet for piano, published in 1725."])
    genre: GenreName | None = None
    image: Url | None = None
    release_date: ReleaseDate | None = None
    album_id: Id | None = Field(
        None,
        description="An album that the caller manages. An album can have at most 1,000 tracks and 768 KiB as JSON.",
    )
    bpm: Annotated[int, Field(strict=True, ge=20, le=400)] | None = None
    key: Key | None = None
    scale: Scale | None = None
    price: Price | None = None
    currency: Currency | None = None
    licensing_type: Licensing | None = None
    exclusive_status: Exclusive | None = None
    exclusive_price: Price | None = None
    tags: Tags | None = None
    isrc: Isrc | None = None
    track_number: TrackNumber | None = None
    disc_number: DiscNumber | None = None
    explicit: StrictBool | None = None


class TrackIn(TrackEdit):
    """A new track; the caller must manage one of its artists."""

    name: Name = Field(examples=["Menuett G-Dur"])
    duration: Duration
    artists: ArtistIds


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


class Track(TrackNested):
    """A track, as returned to callers with a token."""

    model_type: Literal["track"]
    created_at: Timestamp
    duration_text: str = Field(examples=["3:04"], description="`m:ss`, from one hour on `h:mm:ss`.")
    bpm: int | None = Field(examples=[100])
    key: str | None = Field(examples=["G#"])
    scale: Literal["Major", "Minor"] | None = Field(examples=["Major"])
    plays: int
    likes_count: int
    reposts_count: int
    price: float | None = Field(examples=[12.5])
    currency: str = Field(examples=["USD"])
    licensing_type: Literal["non_exclusive_only", "both", "exclusive_only"]
    exclusive_status: Literal["available", "not_available", "sold"]
    exclusive_price: float | None = Field(examples=[None])
    genres: list[Genre]
    tags: list[Tag]
    album_id: int | None
    isrc: str | None = Field(examples=["GBAYE6800011"])
    track_number: int | None = Field(examples=[1])
    disc_number: int | None = Field(examples=[1])
    explicit: bool | None = Field(examples=[False])


class AlbumPublic(Answer):
    """An album, as returned to callers without a token."""

    id: int
    name: str = Field(examples=["Das Wohltemperierte Klavier"])
    model_type: Literal["album"]
    image: Uri | None
    release_date: Date | None


class Album(Answer):
    """An album, as returned to callers with a token; the query parameter `with` adds `genres` and `tags`."""

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
    upc: str | None = Field(examples=["036000291452"])
    label: str | None = Field(examples=["Breitkopf"])
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
