"""Peewee models of the database tables."""

from musicsvc.store.models.accounts import (
    AccessRequest,
    ArtistOffer,
    ArtistOfferArtist,
    KeptAnswer,
    PasswordLink,
    ReportLink,
    ReportLinkSubject,
    Secret,
    Session,
    Token,
    User,
)
from musicsvc.store.models.activity import (
    LOG_TABLES,
    Activity,
    ActivityObjects,
    ActivityProgress,
    ActivitySum,
    SecurityEvent,
)
from musicsvc.store.models.catalog import (
    Album,
    AlbumArtist,
    AlbumTag,
    Artist,
    Comment,
    Genre,
    ListBlock,
    Merged,
    MergedCredit,
    Tag,
    Track,
    TrackArtist,
    TrackGenre,
    TrackRank,
    TrackTag,
)
from musicsvc.store.models.imports import DivideRule, ImportItem, ImportRun, ImportTask
from musicsvc.store.models.plays import (
    DeletedTrack,
    DroppedPlay,
    Listener,
    ListenProgress,
    OwnPlayDay,
    PendingListen,
    Play,
    PlayCount,
    PlayProgress,
    RefusedListen,
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


def tables() -> list[type[Table]]:
    """Return the models of all tables except the activity log, each after the tables that its foreign keys refer to."""
    return list(Table.__subclasses__())
