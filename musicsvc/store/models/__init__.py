"""Peewee models of the database tables."""

from musicsvc.store.models.accounts import AccessRequest, PasswordLink, ReportLink, Secret, Session, Token, User
from musicsvc.store.models.activity import Activity, SecurityEvent
from musicsvc.store.models.catalog import (
    Album,
    AlbumArtist,
    AlbumTag,
    Artist,
    Comment,
    Genre,
    ListBlock,
    Tag,
    Track,
    TrackArtist,
    TrackGenre,
    TrackRank,
    TrackTag,
)
from musicsvc.store.models.imports import ImportItem, ImportRun
from musicsvc.store.models.plays import (
    DeletedTrack,
    Listener,
    Play,
    PlayCount,
    PlayProgress,
    TrackPlays,
)
from musicsvc.store.models.social import (
    Collection,
    CollectionTrack,
    Conversation,
    Device,
    EngagementDay,
    Follow,
    Message,
    NotificationChoice,
    Participant,
    Playlist,
    PlaylistInvite,
    PlaylistTrack,
    TrackLike,
    TrackRepost,
)
from musicsvc.store.models.table import Table

__all__ = [
    "AccessRequest",
    "Activity",
    "Album",
    "AlbumArtist",
    "AlbumTag",
    "Artist",
    "Collection",
    "CollectionTrack",
    "Comment",
    "Conversation",
    "DeletedTrack",
    "Device",
    "EngagementDay",
    "Follow",
    "Genre",
    "ImportItem",
    "ImportRun",
    "ListBlock",
    "Listener",
    "Message",
    "NotificationChoice",
    "Participant",
    "PasswordLink",
    "Play",
    "PlayCount",
    "PlayProgress",
    "Playlist",
    "PlaylistInvite",
    "PlaylistTrack",
    "ReportLink",
    "Secret",
    "SecurityEvent",
    "Session",
    "Table",
    "Tag",
    "Token",
    "Track",
    "TrackArtist",
    "TrackGenre",
    "TrackLike",
    "TrackPlays",
    "TrackRank",
    "TrackRepost",
    "TrackTag",
    "User",
    "tables",
]  # fmt: skip


def tables() -> list[type[Table]]:
    """Return the models of all tables except the activity log, each after the tables that its foreign keys refer to."""
    return list(Table.__subclasses__())
