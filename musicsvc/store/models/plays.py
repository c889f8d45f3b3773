"""Plays as they came, and what is kept up from them: per day and of all time, for tracks, albums and artists."""

from __future__ import annotations

from peewee import BigAutoField, BigIntegerField, BlobField, CompositeKey, IntegerField, TextField, fn

from musicsvc.store.models.catalog import Track
from musicsvc.store.models.table import Table, link


class Listener(Table):
    """Who listens; `key` is an account's (`account:7`) or an opaque one's (`opaque:…`). The id fits 32 bits."""

    id = BigAutoField()
    key = TextField(unique=True)


class Play(Table):
    """A play; `slot` is its half minute (Unix seconds // 30), `client_key` a hash of the client's id, or empty.

    The primary key is the rule for repeats: without a client's id one play per track, listener and slot.
    """

    track = link(Track, index=False)
    slot = BigIntegerField()
    listener = link(Listener, index=False)
    client_key = BlobField()
    played_at = BigIntegerField()
    duration_ms = BigIntegerField(null=True)
    reporter = BigIntegerField(default=0)

    class Meta:
        primary_key = CompositeKey("track", "slot", "listener", "client_key")


# Partial, hence not in Meta: a client's id is taken once, and plays without one are many.
Play.add_index(Play.client_key, unique=True, name="play_client_key", where=fn.LENGTH(Play.client_key) > 0)


class PlayDay(Table):
    """The plays of a subject on a day, and its listeners as a packed set (listeners.py)."""

    kind = IntegerField()
    subject = BigIntegerField()
    day = IntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "day")


class PlayTotal(Table):
    """The plays of a subject of all time, and its listeners as a packed set."""

    kind = IntegerField()
    subject = BigIntegerField()
    plays = BigIntegerField()
    listeners = BlobField()

    class Meta:
        primary_key = CompositeKey("kind", "subject")
