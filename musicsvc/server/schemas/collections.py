"""Requests and responses of collections, a user's named groups of tracks."""

from typing import Annotated, ClassVar

from pydantic import Field

from musicsvc.server.schemas.answers import Answer, Timestamp, UserSummary
from musicsvc.server.schemas.catalog import TrackNested
from musicsvc.server.schemas.fields import Body, Id, Name, Text
from musicsvc.store.catalog import tracks

MAX_TRACKS = 500


class CollectionIn(Body):
    """A new collection of tracks."""

    references: ClassVar = {"track_ids": tracks.missing}

    name: Name = Field(examples=["Left hand alone"])
    description: Annotated[str, Text(0, 1000)] | None = Field(None, examples=["Piano pieces for the left hand."])
    track_ids: Annotated[list[Id], Field(max_length=MAX_TRACKS)] | None = None


class CollectionListed(Answer):
    """A collection without its tracks, as returned in lists; `GET /collections/{id}` returns the tracks."""

    id: int
    name: str = Field(examples=["Left hand alone"])
    description: str | None = Field(examples=["Piano pieces for the left hand."])
    tracks_count: int
    user: UserSummary
    created_at: Timestamp


class Collection(Answer):
    """A collection with its tracks in their order."""

    id: int
    name: str = Field(examples=["Left hand alone"])
    description: str | None = Field(examples=["Piano pieces for the left hand."])
    tracks_count: int
    tracks: list[TrackNested]
    user: UserSummary
    created_at: Timestamp
