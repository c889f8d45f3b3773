"""Tables of plays, and of daily, weekly and monthly totals of plays.

Tables with many inserts begin their primary key with the time and have no foreign keys, which makes inserts faster.
"""

from peewee import SQL, BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.table import Table


class Listener(Table):
    """A listener. `key` contains an account id (`account:7`) or a name chosen by an API client (`opaque:NAME`)."""

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
    named = BigIntegerField(null=True)  # a hash of the names by which an imported row named its track
    reported_at = BigIntegerField(null=True)  # or imported; None before migration 0027, and of fixtures

    class Meta:
        primary_key = CompositeKey("slot", "track", "listener", "client_key")


# Not in Meta, because the index is partial: clients' ids are unique, but many plays have none.
Play.add_index(Play.client_key, unique=True, name="play_client_key", where=fn.LENGTH(Play.client_key) > 0)

# The plays of a track on a day, in order of time; a window may end within a day.
Play.add_index(SQL("(slot / 2880)"), Play.track, Play.slot, Play.listener, name="play_of_day")

# The plays that an account reported. Imports and fixtures, which have no reporter, are not in it.
Play.add_index(Play.reporter, Play.reported_at, name="play_of_reporter", where=Play.reporter > SQL("0"))


class PlayDay(Table):
    """Plays and listeners of a track, album or artist on one day."""

    key = BigIntegerField(primary_key=True)  # day since 1970, kind and id: musicsvc.store.plays.daily
    plays = BigIntegerField()
    listeners = BlobField()  # ids, packed by musicsvc.store.plays.rollups.listeners
    histogram = BlobField(default=b"")  # hours and completion, packed by musicsvc.store.plays.rollups.histograms


class PlayBlock(Table):
    """Plays and listeners of a track, album or artist in a month of 32 days. `block`: day since 1970 // 32."""

    kind = IntegerField()  # 1: track, 2: album, 3: artist
    subject = BigIntegerField()  # the id of the track, album or artist
    block = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()
    histogram = BlobField(default=b"")
    days = BlobField(
        null=True
    )  # plays and listeners of each day, by musicsvc.store.plays.rollups.monthly; or not known

    class Meta:
        primary_key = CompositeKey("kind", "subject", "block")


# Not in Meta, because the index is partial: the months whose days are still to be counted.
PlayBlock.add_index(
    PlayBlock.block, name="play_block_without_days", where=PlayBlock.days.is_null() & (PlayBlock.plays >= SQL("256"))
)


class PlayStretch(Table):
    """Plays and listeners of a track, album or artist with many plays in 8 days. `stretch`: day since 1970 // 8."""

    kind = IntegerField()
    subject = BigIntegerField()
    stretch = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()
    histogram = BlobField(default=b"")

    class Meta:
        primary_key = CompositeKey("kind", "subject", "stretch")


class PlayPart(Table):
    """Two-hour plays and listeners of a track, album or artist with many plays. `part`: hour since 1970 // 2."""

    kind = IntegerField()
    subject = BigIntegerField()
    part = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "part")


class PlayMark(Table):
    """The progress, in a single row, of the jobs that fill `PlayBlock` and `PlayStretch` and delete old plays."""

    id = IntegerField(primary_key=True)
    block = IntegerField()  # with `kind` and `subject`: the key of the next row of `PlayBlock` to write
    kind = IntegerField()
    subject = BigIntegerField()
    kept_from = IntegerField()  # the first day whose individual plays were not deleted
    stretch = IntegerField(default=0)  # the next `stretch` of `PlayStretch` to write
    own_from = IntegerField(default=0)  # the first day whose own plays are known


class OwnPlayDay(Table):
    """Plays of a track on a day that the listeners' own accounts reported. Days without such plays have no row."""

    track = BigIntegerField(column_name="track_id")
    day = IntegerField()
    plays = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("track", "day")


class TrackPlays(Table):
    """The all-time number of plays of a track."""

    track = BigIntegerField(primary_key=True, column_name="track_id")
    plays = BigIntegerField()
