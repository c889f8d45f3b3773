"""Plays, and their daily, weekly and monthly rollups.

The keys of plays and daily rollups begin with the time, so that rows written together are stored together. Sets of
listeners are packed (plays/rollups/listeners.py). There are no foreign keys: the rows that plays refer to are never
deleted, and checking a key would cost as much as storing the play.
"""

from __future__ import annotations

from peewee import BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.table import Table


class Listener(Table):
    """A listener. `key` is an account (`account:7`) or a name that the client chose (`opaque:…`). Ids fit 32 bits."""

    id = BigAutoField()
    key = TextField(unique=True)


class Play(Table):
    """A play. `slot` is its time as Unix seconds // 30. `client_key` is a hash of the id the client gave it, or empty.

    The primary key rejects duplicates: of the plays without a client's id, one is stored per track, listener and slot.
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
    """A daily rollup: the plays and listeners of the track, album or artist (by `kind`) with the id `subject`."""

    day = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("day", "kind", "subject")


class PlayBlock(Table):
    """A monthly rollup of 32 past days, with the columns of `PlayDay`. `block` is the day number // 32."""

    kind = IntegerField()
    subject = BigIntegerField()
    block = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "block")


class PlayStretch(Table):
    """A weekly rollup of eight recent days, for subjects with many plays. `stretch` is the day number // 8."""

    kind = IntegerField()
    subject = BigIntegerField()
    stretch = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "stretch")


class PlayMark(Table):
    """The progress of the rollups. `kept_from` is the first day whose individual plays are retained.

    All monthly rollups before (block, kind, subject) in sort order have been written, and all weekly ones before
    `stretch`.
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
