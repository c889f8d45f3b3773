"""Tables of plays, and of play counts.

Tables with many inserts begin their primary key with the time and have no foreign keys, which makes inserts faster.
"""

from typing import NamedTuple

from peewee import SQL, BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.table import Table


class Listener(Table):
    """A listener. `key` contains an account id (`account:7`) or a name chosen by an API client (`opaque:NAME`).

    If the listener was erased, it is random (`erased:…`, `erased:account:…`).
    """

    id = BigAutoField()
    key = TextField(unique=True)


class Play(Table):
    """A play of a track. `client_key` is a hash of the id that the API client gave to the play, or empty.

    The primary key rejects repeated plays. Plays without `client_key`: one per track, listener and `slot` (30 seconds).
    """

    slot = BigIntegerField()  # Unix seconds // 30
    track = BigIntegerField(column_name="track_id")
    listener = BigIntegerField(column_name="listener_id")
    client_key = BlobField()
    played_at = BigIntegerField()
    duration_ms = BigIntegerField(null=True)
    reporter = BigIntegerField(default=0)  # the account that reported it through the API
    import_id = BigIntegerField(null=True)  # the `ImportRun` that brought it
    names_hash = BigIntegerField(null=True)  # of the names in an imported row; negative: its time is cut to the minute
    reported_at = BigIntegerField(null=True)  # or imported; None for fixtures
    platform = TextField(null=True)  # the player, such as `navidrome`
    source = TextField(null=True)
    country = TextField(null=True)
    playlist = BigIntegerField(column_name="playlist_id", null=True)

    class Meta:
        primary_key = CompositeKey("slot", "track", "listener", "client_key")


# Not in Meta, because the index is partial: clients' ids are unique, but many plays have none.
Play.add_index(Play.client_key, unique=True, name="play_client_key", where=fn.LENGTH(Play.client_key) > 0)

# The plays of a track on a day, in order of time; a window may end within a day.
Play.add_index(SQL("(slot / 2880)"), Play.track, Play.slot, Play.listener, name="play_of_day")

# The plays that an account reported. Imports and fixtures, which have no reporter, are not in it.
Play.add_index(Play.reporter, Play.reported_at, name="play_of_reporter", where=Play.reporter > SQL("0"))


class PlayRow(NamedTuple):
    """A row of the table of plays. `client_key` is a hash of the play's id at the client, or empty without an id."""

    slot: int
    track: int
    listener: int
    client_key: bytes
    played_at: int
    duration_ms: int | None
    reporter: int
    import_id: int | None = None
    names_hash: int | None = None  # see `store/importing/plays/matching.py`
    reported_at: int | None = None
    platform: str | None = None


class OwnPlayDay(Table):
    """The number of accepted own plays of an account, as a listener, by the day on which they were played."""

    day = BigIntegerField()  # since 1970-01-01
    listener = BigIntegerField(column_name="listener_id")
    plays = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("day", "listener")


class PendingListen(Table):
    """A listen that matched no track when a player reported it. `counted_for`: the track whose play it is since.

    It is negative for a track that the account named, until the play is counted, and for one that an undo took back,
    until another was looked for; 0 for a dismissed listen, which keeps its half minute, without texts. `names`: a hash
    of the keys of artist and title, `artist_key`: of the artist alone.
    """

    id = BigAutoField()
    user = BigIntegerField(column_name="user_id")
    slot = BigIntegerField()
    played_at = BigIntegerField()
    received_at = BigIntegerField()
    names = BigIntegerField()
    artist_key = BigIntegerField()
    artist = TextField()
    title = TextField()
    release = TextField(null=True)
    isrc = TextField(null=True)
    external_id = TextField(null=True)
    platform = TextField(null=True)
    counted_for = BigIntegerField(null=True)

    class Meta:
        indexes = ((("user", "slot"), False),)


_counted = PendingListen.counted_for.is_null(is_null=False)
_waiting = PendingListen.counted_for.is_null()
PendingListen.add_index(PendingListen.counted_for, name="pending_listen_counted_for", where=_counted)
PendingListen.add_index(PendingListen.user, PendingListen.names, name="pending_listen_names", where=_waiting)
PendingListen.add_index(PendingListen.id, name="pending_listen_waiting", where=_waiting)
PendingListen.add_index(PendingListen.artist_key, PendingListen.id, name="pending_listen_artist", where=_waiting)
PendingListen.add_index(PendingListen.isrc, name="pending_listen_isrc", where=_waiting & ~PendingListen.isrc.is_null())
PendingListen.add_index(
    PendingListen.external_id, name="pending_listen_external_id", where=_waiting & ~PendingListen.external_id.is_null()
)


class RefusedListen(Table):
    """The number of listens of an account that were refused for a reason."""

    user = BigIntegerField(column_name="user_id")
    reason = TextField()
    listens = BigIntegerField()
    last_at = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("user", "reason")


class ListenProgress(Table):
    """The progress, in a single row, of the search for tracks of pending listens.

    `position`: of the last change of the catalog that was looked at; `after`: the last pending listen looked at for
    the changes after it; `seen`: the last one that was looked at by itself.
    """

    id = IntegerField(primary_key=True)
    position = BigIntegerField()
    after = BigIntegerField()
    seen = BigIntegerField()


class PlayCount(Table):
    """Plays and listeners of a track, album, artist or account on one day, or in a block of 8 or of 32 days.

    On PostgreSQL it also has batches of plays that are not counted yet: musicsvc.store.plays.counting.
    """

    key = BigIntegerField(primary_key=True)  # level, period, kind and id: musicsvc.store.plays.rollups.counts
    plays = BigIntegerField()
    own = BigIntegerField()  # plays that listeners' own accounts reported
    listeners = BlobField()  # ids, packed by musicsvc.store.plays.rollups.listeners
    histogram = BlobField()  # hours and completion, packed by musicsvc.store.plays.rollups.histograms


class PlayProgress(Table):
    """The progress, in a single row, of the jobs that count blocks of days and delete old plays."""

    id = IntegerField(primary_key=True)
    block8 = BigIntegerField()  # the key from which on there are no counts of blocks of 8 days yet
    block32 = BigIntegerField()  # the same for blocks of 32 days
    kept_from = IntegerField()  # the first day whose individual plays were not deleted


class DeletedTrack(Table):
    """A subject that plays of a deleted track still count for: the track itself, its album or one of its artists."""

    kind = IntegerField()  # of the subject: musicsvc.store.plays.subjects
    subject = BigIntegerField()
    track = BigIntegerField(column_name="track_id", index=True)
    duration = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "track")


class DroppedPlay(Table):
    """A play with a client's id that a merge of tracks dropped, so that a repeated report of it is recognized."""

    client_key = BlobField(primary_key=True)
    slot = BigIntegerField(index=True)
    listener = BigIntegerField(column_name="listener_id")
    names_hash = BigIntegerField(null=True)


class TrackPlays(Table):
    """The all-time number of plays of a track."""

    track = BigIntegerField(primary_key=True, column_name="track_id")
    plays = BigIntegerField()
