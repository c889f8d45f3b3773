"""Plays as they came, and what is kept up from them: per day, per block of days, and how often each track was played.

Keys begin with the time, so that what is written together lies together. Sets of listeners are packed (listeners.py).
There are no foreign keys here: nothing that plays name is ever deleted, and checking costs as much as the play itself.
"""

from __future__ import annotations

from peewee import BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.table import Table


class Listener(Table):
    """Who listens; `key` is an account's (`account:7`) or an opaque one's (`opaque:…`). The id fits 32 bits."""

    id = BigAutoField()
    key = TextField(unique=True)


class Play(Table):
    """A play; `slot` is its half minute (Unix seconds // 30), `client_key` a hash of the client's id, or empty.

    The primary key is the rule for repeats: without a client's id one play per track, listener and slot.
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


# Partial, hence not in Meta: a client's id is taken once, and plays without one are many.
Play.add_index(Play.client_key, unique=True, name="play_client_key", where=fn.LENGTH(Play.client_key) > 0)


class PlayDay(Table):
    """The plays of a track, album or artist on a day, and its listeners."""

    day = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("day", "kind", "subject")


class PlayBlock(Table):
    """The same of a block of days that are over (blocks.py)."""

    kind = IntegerField()
    subject = BigIntegerField()
    block = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "block")


class PlayStretch(Table):
    """The same of eight days of late, for what is played much (stretches.py)."""

    kind = IntegerField()
    subject = BigIntegerField()
    stretch = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "stretch")


class PlayMark(Table):
    """How far the blocks are made: those of smaller (block, kind, subject); and the first day whose plays are kept.

    Stretches are made before the one that is named.
    """

    id = IntegerField(primary_key=True)
    block = IntegerField()
    kind = IntegerField()
    subject = BigIntegerField()
    kept_from = IntegerField()
    stretch = IntegerField(default=0)


class TrackPlays(Table):
    """The plays of a track of all time."""

    track = BigIntegerField(primary_key=True, column_name="track_id")
    plays = BigIntegerField()
