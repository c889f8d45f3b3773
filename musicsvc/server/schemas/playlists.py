"""Requests and responses of playlists, lists of tracks that several users can edit (docs/playlists.md).

Also of collections, a user's named groups of tracks.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from musicsvc.server.schemas.answers import Answer, Success, Timestamp, Uri, UserSummary
from musicsvc.server.schemas.catalog import TrackNested
from musicsvc.server.schemas.fields import MAX_ID, Body, Id, Name, NameText, Text, Url
from musicsvc.store.accounts import users
from musicsvc.store.catalog import tracks
from musicsvc.store.playlists import playlists
from musicsvc.wording import quantity

MAX_IDS = 500
SPELLINGS = {"true": True, "1": True, "false": False, "0": False, "": False}
FLAG_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "string", "pattern": r"^\s*((true|false|1|0)\s*)?$"},
        {"type": "null"},
    ],
    "description": "A boolean; an empty string and null are taken as false.",
    "examples": [True],
}


def _flag(value: Any) -> bool:
    if value is None:
        return False
    spelled = value.strip() if isinstance(value, str) else None
    if isinstance(value, bool):
        return value
    if spelled not in SPELLINGS:
        raise ValueError('Must be true or false, or one of "true", "false", "1", "0".')
    return SPELLINGS[spelled]


def _of_another(value: int, info: ValidationInfo) -> int:
    if value == (info.context or {}).get("caller_id"):
        raise ValueError("You cannot invite yourself.")
    return value


Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema(FLAG_SCHEMA)]
PlaylistName = Annotated[str, NameText(1, 250)]
Position = Annotated[int, Field(strict=True, ge=1, le=MAX_ID, examples=[1])]
Ids = Annotated[list[Id], Field(min_length=1, max_length=MAX_IDS)]


class PlaylistEdit(Body):
    """Changes of a playlist. Fields that are not sent stay; null removes a description or image."""

    name: PlaylistName | None = Field(None, examples=["Rags for a rainy day"])
    description: Annotated[str, Text(20, 170)] | None = Field(
        None, examples=["Ragtime for rainy days, slow tracks first."]
    )
    image: Url | None = None
    public: Flag = False
    collaborative: Flag = False


class PlaylistIn(PlaylistEdit):
    """A playlist to create or replace; absent fields get their defaults."""

    name: PlaylistName = Field(examples=["Rags for a rainy day"])


class PlaylistPut(PlaylistIn):
    """A playlist to replace, found by `id` or else by name; it is created if the caller has none with this name."""

    subjects: ClassVar = {"id": "playlists"}

    id: Id | None = None


class TracksOut(Body):
    """Tracks to remove from a playlist; tracks that it does not contain are ignored."""

    ids: Ids


class TracksIn(Body):
    """Tracks to append to a playlist, in this order."""

    references: ClassVar = {"ids": tracks.missing}

    ids: Ids

    @classmethod
    def check_against_store(cls, sent: dict[str, Any], faults: dict[str, str], subject: Any = None) -> dict[str, str]:
        """Return an error message for each unknown track, and for a playlist that would have too many."""
        errors = super().check_against_store(sent, faults)
        if "ids" not in faults and subject.tracks_count + len(sent["ids"]) > playlists.MOST_TRACKS:
            errors["ids"] = f"A playlist has at most {playlists.MOST_TRACKS:,} tracks."
        return errors


class MoveIn(Body):
    """The positions of a track in a playlist, counted from 1: before and after it is moved."""

    first: Position = Field(alias="from")
    to: Position

    @classmethod
    def check_against_store(cls, sent: dict[str, Any], faults: dict[str, str], subject: Any = None) -> dict[str, str]:
        """Return an error message for each position after the last track, and for a move over too many."""
        last = subject.tracks_count
        errors = {
            name: f"The playlist has {quantity(last, 'track')}."
            for name in ("from", "to")
            if name not in faults and sent[name] > last
        }
        if not (faults or errors) and abs(sent["to"] - sent["from"]) >= playlists.MOST_TRACKS:
            errors["to"] = f"Must be less than {playlists.MOST_TRACKS:,} positions away."
        return errors


class InviteIn(Body):
    """The user to invite as a collaborator."""

    references: ClassVar = {"user_id": users.missing}

    user_id: Annotated[Id, AfterValidator(_of_another)] = Field(examples=[3])


class Playlist(Answer):
    """A playlist without its tracks, which `GET /playlists/{id}/tracks` returns."""

    id: int
    name: str = Field(examples=["Rags for a rainy day"])
    public: bool
    collaborative: bool = Field(description="Whether users who accepted an invitation may edit the tracks.")
    image: Uri | None
    description: str | None = Field(examples=["Ragtime for rainy days, slow tracks first."])
    model_type: Literal["playlist"]
    created_at: Timestamp
    tracks_count: int
    owner: UserSummary


class Invitation(Answer):
    """An open invitation to edit a playlist, from the owner of the playlist."""

    playlist: Playlist
    inviter: UserSummary
    created_at: Timestamp
    expires_at: Timestamp


class Invited(Success):
    """A response that confirms that the invitation was sent."""

    message: Literal["Invitation sent successfully."]


class CollectionIn(Body):
    """A new collection of tracks."""

    references: ClassVar = {"track_ids": tracks.missing}

    name: Name = Field(examples=["Left hand alone"])
    description: Annotated[str, Text(0, 1000)] | None = Field(None, examples=["Piano pieces for the left hand."])
    track_ids: Annotated[list[Id], Field(max_length=MAX_IDS)] | None = None


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
