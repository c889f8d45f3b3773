"""Bodies and queries of artists, albums and tracks (docs/api.md, Artists, albums, tracks)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from musicsvc.server.schemas.currencies import CODES
from musicsvc.server.schemas.fields import (
    TRIMMED,
    Body,
    Description,
    Id,
    Name,
    Pages,
    Query,
    ReleaseDate,
    Tag,
    Url,
    unrepeated,
)
from musicsvc.store.catalog import albums, artists, genres

MAX_DURATION = 86_400_000
MAX_PRICE = 1_000_000_000
PARTS = ("tags", "genres", "artists", "tracks")
PART = rf"\s*(({'|'.join(PARTS)})\s*)?"
PARTS_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": f"^{PART}(,{PART})*$",
    "examples": ["genres,tags"],
    "description": f"What is wanted beside the album itself, separated by commas: {', '.join(PARTS)}.",
}


def _has_slug(value: str) -> str:
    if not genres.slug(value):
        raise ValueError("Must hold a letter or a digit.")
    return value


def _known_currency(value: str) -> str:
    if value not in CODES:
        raise ValueError("Must be a currency code of ISO 4217, such as USD.")
    return value


def _without_sign(value: float) -> float:
    """Return 0.0 for -0.0, which PostgreSQL would give back and SQLite would not."""
    return value + 0.0


def _parts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    names = [name.strip() for name in value.split(",")]
    unknown = [name for name in names if name and name not in PARTS]
    if unknown:
        raise ValueError(f"Takes {', '.join(PARTS)}, separated by commas.")
    return frozenset(filter(None, names))


Genre = Annotated[Tag, AfterValidator(_has_slug), Field(examples=["Baroque"])]
Currency = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True),
    AfterValidator(_known_currency),
    Field(examples=["USD"], description="ISO 4217.", json_schema_extra={"pattern": "^[A-Z]{3}$"}),
]
Price = Annotated[
    float,
    Field(strict=True, ge=0, le=MAX_PRICE, allow_inf_nan=False, examples=[12.5]),
    AfterValidator(_without_sign),
]
Key = Annotated[Literal["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"], TRIMMED]
Scale = Annotated[Literal["Major", "Minor"], TRIMMED]
Licensing = Annotated[Literal["non_exclusive_only", "both", "exclusive_only"], TRIMMED]
Exclusive = Annotated[Literal["available", "not_available", "sold"], TRIMMED]
Tags = Annotated[list[Tag], Field(max_length=20, examples=[["keyboard", "teaching"]])]


class ArtistIn(Body):
    """A new artist."""

    name: Name = Field(examples=["Clara Schumann"])
    description: Description | None = Field(None, examples=["Pianist and composer, born in Leipzig in 1819."])
    image_small: Url | None = None


class AlbumIn(Body):
    """A new album of an artist that the caller manages."""

    references: ClassVar = {"artist_id": artists.missing}
    subjects: ClassVar = {"artist_id": "artists"}

    name: Name = Field(examples=["Notenbüchlein"])
    artist_id: Id
    description: Description | None = Field(None, examples=["Begun in 1725."])
    release_date: ReleaseDate | None = None
    image: Url | None = None
    tags: Tags | None = None


class TrackIn(Body):
    """A new track of artists of whom the caller manages at least one."""

    references: ClassVar = {"artists": artists.missing, "album_id": albums.missing}
    subjects: ClassVar = {"album_id": "albums", "artists": "artists"}

    name: Name = Field(examples=["Menuett G-Dur"])
    duration: Annotated[int, Field(strict=True, ge=1, le=MAX_DURATION, examples=[98_000], description="Milliseconds.")]
    artists: Annotated[
        list[Id],
        Field(min_length=1, max_length=50, json_schema_extra={"uniqueItems": True}),
        AfterValidator(unrepeated),
    ]
    description: Description | None = Field(None, examples=["Long thought to be by another hand."])
    genre: Genre | None = None
    image: Url | None = None
    release_date: ReleaseDate | None = None
    album_id: Id | None = Field(
        None, description="An album that the caller manages. It holds at most 1,000 tracks, and 768 KiB as JSON."
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


class AlbumParts(Query):
    """What an album is asked for beside itself."""

    with_: Annotated[frozenset[str], BeforeValidator(_parts), WithJsonSchema(PARTS_SCHEMA)] = Field(
        frozenset(), alias="with"
    )


class AlbumPages(Pages):
    """Pages of albums and artists, whose size the original specification calls `per_page`."""

    size_name: ClassVar[str] = "per_page"
