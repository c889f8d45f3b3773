"""What clients get, as schemas: for the OpenAPI document and for the tests; answers themselves are literal dicts."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from musicsvc.server.schemas.fields import URL_PATTERN

T = TypeVar("T")
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
Date = Annotated[str, Field(examples=["1899-09-18"], json_schema_extra={"format": "date"})]
Timestamp = Annotated[
    str,
    Field(pattern=MOMENT, examples=["2026-01-31T12:00:00.000000Z"], json_schema_extra={"format": "date-time"}),
]
Uri = Annotated[str, Field(pattern=URL_PATTERN, examples=["https://images.example.test/maple-leaf.jpg"])]


class Answer(BaseModel):
    """A JSON object with exactly these keys, all of them always there but those that have a default here.

    `examples` of fields make up the examples of the OpenAPI document; strings need one, or a schema that gives one.
    """

    model_config = ConfigDict(extra="forbid")


class Success(Answer):
    """Done."""

    status: Literal["success"]


class Alive(Answer):
    """The process answers."""

    status: Literal["ok"]


class UserSummary(Answer):
    """An account as others see it."""

    id: int
    display_name: str = Field(examples=["Northern Lights Records"])
    avatar: Uri = Field(examples=["https://music.example.test/avatars/7"])


class RegisteredUser(UserSummary):
    """A new account; the token is there only where `token_name` was sent."""

    access_token: str = Field("", examples=["msvc_" + "0" * 46])


class Registered(Success):
    """The new account."""

    user: RegisteredUser


class Genre(Answer):
    """A genre; `name` is its slug."""

    id: int
    name: str = Field(examples=["ragtime"])
    display_name: str = Field(examples=["Ragtime"])
    model_type: Literal["genre"]


class Tag(Answer):
    """A free word."""

    id: int
    name: str = Field(examples=["syncopated"])


class ArtistNested(Answer):
    """An artist within another resource."""

    id: int
    name: str = Field(examples=["Scott Joplin"])
    image_small: Uri | None
    verified: bool


class ArtistPublic(Answer):
    """An artist without a token."""

    id: int
    name: str = Field(examples=["Scott Joplin"])
    model_type: Literal["artist"]


class Artist(ArtistNested):
    """An artist with a token."""

    model_type: Literal["artist"]
    created_at: Timestamp
    albums_count: int
    tracks_count: int


class TrackNested(Answer):
    """A track within another resource."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    release_date: Date | None
    image: Uri | None
    duration: int = Field(examples=[184_250], description="Milliseconds.")
    description: str | None = Field(examples=["The one that paid the rent."])
    artists: list[ArtistNested]


class TrackPublic(Answer):
    """A track without a token."""

    id: int
    name: str = Field(examples=["Maple Leaf Rag"])
    image: Uri | None
    created_at: Timestamp
    model_type: Literal["track"]
    duration_text: str = Field(examples=["3:04"], description="`m:ss`, from one hour on `h:mm:ss`.")


class Track(TrackNested):
    """A track with a token."""

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


class AlbumPublic(Answer):
    """An album without a token."""

    id: int
    name: str = Field(examples=["Das Wohltemperierte Klavier"])
    model_type: Literal["album"]
    image: Uri | None
    release_date: Date | None


class Album(Answer):
    """An album with a token; genres and tags where `with` asks for them."""

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
    genres: list[Genre] = []
    tags: list[Tag] = []


class Comment(Answer):
    """A comment; a deleted one that has replies stays, without its content."""

    id: int
    content: str = Field(examples=["Is this the 1899 print?"])
    position: int = Field(examples=[12], description="Where in the track, in percent.")
    depth: int = Field(examples=[0], description="0 for a root, one more for each reply.")
    deleted: bool
    user: UserSummary


class Paginator(Answer, Generic[T]):
    """One page of a list."""

    current_page: int
    from_: int | None = Field(alias="from", description="The number of the first row on the page, from 1.")
    to: int | None
    per_page: int = Field(examples=[20])
    last_page: int
    total: int
    data: list[T]


class Paged(Success, Generic[T]):
    """A list under `pagination`."""

    pagination: Paginator[T]


class OfAlbums(Success, Generic[T]):
    """A list under `albums`."""

    albums: Paginator[T]


class OfArtists(Success, Generic[T]):
    """A list under `artists`."""

    artists: Paginator[T]


class OneAlbum(Success, Generic[T]):
    """An album."""

    album: T


class OneArtist(Success, Generic[T]):
    """An artist."""

    artist: T


class OneTrack(Success, Generic[T]):
    """A track."""

    track: T


class Fingerprint(Success):
    """The status of a track's fingerprint."""

    fingerprint_status: Literal["pending", "processing", "completed", "failed"]
