"""Tables of plays, and of daily, weekly and monthly totals of plays.

Tables with many inserts begin their primary key with the time and have no foreign keys, which makes inserts faster.
"""

from __future__ import annotations

from peewee import BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.table import Table


class Listener(Table):
    """A listener. `key` is an account (`account:7`) or a name chosen by an API client (`opaque:…`)."""

    id = BigAutoField()
    key = TextField(unique=True)


class Play(Table):
    """A play. `slot` is its time in Unix seconds // 30. `client_key` is a hash of the client's id for it, or empty.

    The primary key rejects duplicates: plays without a client's id are stored once per track, listener and slot.
    """

    slot = BigIntegerField()
    track = BigIntegerField(column_name="track_id")
    listener = BigIntegerField(column_name="listener_id")
    client_key = BlobField()
    played_at = BigIntegerField()
    duration_ms = BigIntegerField(null=True)
    reporter = BigIntegerField(default=0)

    class Meta:
        primary_key = CompositeKey("slot", "track", "listener", "client_key")


# Not in Meta, because the index is partial: clients' ids are unique, but many plays have none.
Play.add_index(Play.client_key, unique=True, name="play_client_key", where=fn.LENGTH(Play.client_key) > 0)


class PlayDay(Table):
    """The plays and the set of listeners on one day, for the track, album or artist (`kind`) with the id `subject`."""

    day = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("day", "kind", "subject")


class PlayBlock(Table):
    """`PlayDay` totals of 32 past days: the plays and the set of listeners. `block` is the day // 32."""

    kind = IntegerField()
    subject = BigIntegerField()
    block = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "block")


class PlayStretch(Table):
    """`PlayDay` totals of eight recent days, for popular tracks, albums and artists only. `stretch` is the day // 8."""

    kind = IntegerField()
    subject = BigIntegerField()
    stretch = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "stretch")


class PlayMark(Table):
    """The progress of the jobs that fill `PlayBlock` and `PlayStretch`. There is one row.

    `block`, `kind`, `subject`: the next row of `PlayBlock` to write. `stretch`: the next `stretch` to write.
    `kept_from`: the first day whose individual plays are retained.
    """

    id = IntegerField(primary_key=True)
    block = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    kept_from = IntegerField()
    stretch = IntegerField(default=0)


class TrackPlays(Table):
    """The all-time number of plays of a track."""

    track = BigIntegerField(primary_key=True, column_name="track_id")
    plays = BigIntegerField()
