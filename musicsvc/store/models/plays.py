"""Plays, and their rollups by day, week and month.

Keys of plays and days begin with the time, so that rows written together are stored together. Sets of listeners are
packed (plays/rollups/listeners.py). There are no foreign keys: nothing that plays refer to is ever deleted, and a check
would cost as much as the play itself.
"""

from __future__ import annotations

from peewee import BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.table import Table


class Listener(Table):
    """A listener; `key` is that of an account (`account:7`) or an opaque name (`opaque:…`). The id fits 32 bits."""

    id = BigAutoField()
    key = TextField(unique=True)


class Play(Table):
    """A play; `slot` is its time in half minutes (Unix seconds // 30), `client_key` a hash of the client's id or empty.

    The primary key rejects repeats: without a client's id there is one play per track, listener and slot.
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


# Partial, hence not in Meta: a client's id is unique, and many plays have none.
Play.add_index(Play.client_key, unique=True, name="play_client_key", where=fn.LENGTH(Play.client_key) > 0)


class PlayDay(Table):
    """A daily rollup: plays and listeners of a track, album or artist on a day."""

    day = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("day", "kind", "subject")


class PlayBlock(Table):
    """A monthly rollup, of 32 days that are over; `block` is the number of the month."""

    kind = IntegerField()
    subject = BigIntegerField()
    block = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "block")


class PlayStretch(Table):
    """A weekly rollup, of eight recent days of a much played subject; `stretch` is the number of the week."""

    kind = IntegerField()
    subject = BigIntegerField()
    stretch = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "stretch")


class PlayMark(Table):
    """The watermarks of rollups, and `kept_from`, the first day whose single plays are kept.

    Monthly rollups are made of each smaller (block, kind, subject), weekly ones of each smaller `stretch`.
    """

    id = IntegerField(primary_key=True)
    block = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    kept_from = IntegerField()
    stretch = IntegerField(default=0)


class TrackPlays(Table):
    """The number of plays of a track of all time."""

    track = BigIntegerField(primary_key=True, column_name="track_id")
    plays = BigIntegerField()
