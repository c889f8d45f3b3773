"""What clients get, as schemas: for the OpenAPI document and for the tests; answers themselves are literal dicts."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
Date = Annotated[str, Field(json_schema_extra={"format": "date"})]
Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Uri = Annotated[str, Field(json_schema_extra={"format": "uri"})]


class Answer(BaseModel):
    """A JSON object with exactly these keys, all of them always there."""

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
    display_name: str
    avatar: Uri


class RegisteredUser(UserSummary):
    """A new account; the token is there only where `token_name` was sent."""

    access_token: str = ""


class Registered(Success):
    """The new account."""

    user: RegisteredUser


class Genre(Answer):
    """A genre; `name` is its slug."""

    id: int
    name: str
    display_name: str
    model_type: Literal["genre"]


class Tag(Answer):
    """A free word."""

    id: int
    name: str


class ArtistNested(Answer):
    """An artist within another resource."""

    id: int
    name: str
    image_small: Uri | None
    verified: bool


class ArtistPublic(Answer):
    """An artist without a token."""

    id: int
    name: str
    model_type: Literal["artist"]


class Artist(ArtistNested):
    """An artist with a token."""

    model_type: Literal["artist"]
    created_at: Timestamp
    albums_count: int
    tracks_count: int


class TrackNested(Answer):
    """A track within another resource; `duration` in milliseconds."""

    id: int
    name: str
    release_date: Date | None
    image: Uri | None
    duration: int
    description: str | None
    artists: list[ArtistNested]


class TrackPublic(Answer):
    """A track without a token."""

    id: int
    name: str
    image: Uri | None
    created_at: Timestamp
    model_type: Literal["track"]
    duration_text: str


class Track(TrackNested):
    """A track with a token."""

    model_type: Literal["track"]
    created_at: Timestamp
    duration_text: str
    bpm: int | None
    key: str | None
    scale: Literal["Major", "Minor"] | None
    plays: int
    likes_count: int
    reposts_count: int
    price: float | None
    currency: str
    licensing_type: Literal["non_exclusive_only", "both", "exclusive_only"]
    exclusive_status: Literal["available", "not_available", "sold"]
    exclusive_price: float | None
    genres: list[Genre]
    tags: list[Tag]
    album_id: int | None


class AlbumPublic(Answer):
    """An album without a token."""

    id: int
    name: str
    model_type: Literal["album"]
    image: Uri | None
    release_date: Date | None


class Album(Answer):
    """An album with a token; genres and tags where `with` asks for them."""

    id: int
    name: str
    image: Uri | None
    release_date: Date | None
    description: str | None
    tracks: list[TrackNested]
    artists: list[ArtistNested]
    model_type: Literal["album"]
    created_at: Timestamp
    plays: int
    genres: list[Genre] = []
    tags: list[Tag] = []


class Comment(Answer):
    """A comment; `position` in percent of the track."""

    id: int
    content: str
    position: int
    depth: int
    deleted: bool
    user: UserSummary


class Paginator(Answer, Generic[T]):
    """One page of a list."""

    current_page: int
    from_: int | None = Field(alias="from")
    to: int | None
    per_page: int
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
