"""The tables and their indexes. Instants are integers of microseconds, money is a double, ids are 64-bit.

Checks and column types stand in the migrations; `db check` holds the two against each other.
"""

from __future__ import annotations

from typing import Any

from peewee import (
    BigAutoField,
    BigIntegerField,
    BlobField,
    BooleanField,
    CompositeKey,
    DoubleField,
    ForeignKeyField,
    IntegerField,
    Model,
    TextField,
)

from musicsvc.store.database import CurrentDatabase


class Table(Model):
    """What all tables share: the database of the unit that runs."""

    class Meta:
        database = CurrentDatabase()
        legacy_table_names = False


def _link(
    to: type[Model], *, null: bool = False, index: bool = True, on_delete: str = "CASCADE"
) -> ForeignKeyField[Any]:
    options: dict[str, Any] = {"null": null, "index": index, "on_delete": on_delete}
    link: ForeignKeyField[Any] = ForeignKeyField(to, lazy_load=False, backref="+", **options)
    return link


class User(Table):
    """An account."""

    id = BigAutoField()
    email = TextField()
    email_key = TextField(unique=True)
    display_name = TextField()
    avatar = TextField(null=True)
    password_hash = TextField(null=True)
    admin = BooleanField(default=False)
    api_access = BooleanField(default=False)
    reports_plays = BooleanField(default=False)
    suspended_at = BigIntegerField(null=True)
    suspended_reason = TextField(null=True)
    created_at = BigIntegerField()

    class Meta:
        table_name = "account"


class AccessRequest(Table):
    """A request for API access and what became of it."""

    id = BigAutoField()
    email = TextField()
    email_key = TextField(index=True)
    use_case = TextField()
    volume = TextField()
    organization = TextField()
    state = TextField()
    reason = TextField(null=True)
    created_at = BigIntegerField()
    decided_at = BigIntegerField(null=True)


# One pending request an address; the constraint settles the race.
AccessRequest.add_index(
    AccessRequest.index(
        AccessRequest.email_key, unique=True, name="access_request_pending", where=AccessRequest.state == "pending"
    )
)


class Token(Table):
    """A personal access token; its value is nowhere, only the SHA-256 of it."""

    id = BigAutoField()
    user = _link(User)
    name = TextField()
    digest = BlobField(unique=True)
    last_four = TextField()
    created_at = BigIntegerField()
    expires_at = BigIntegerField()
    last_used_at = BigIntegerField(null=True)
    revoked_at = BigIntegerField(null=True)
    revoked_reason = TextField(null=True)


class Artist(Table):
    """An artist; `manager` is the account that may change it."""

    id = BigAutoField()
    name = TextField()
    description = TextField(null=True)
    image_small = TextField(null=True)
    verified = BooleanField(default=False)
    manager = _link(User, null=True, index=False, on_delete="SET NULL")
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("manager", "name"), False),)


class Album(Table):
    """An album; `imported_for` is the account whose external ids these are, 0 for nobody's."""

    id = BigAutoField()
    name = TextField()
    image = TextField(null=True)
    release_date = TextField(null=True)
    description = TextField(null=True)
    external_id = TextField(null=True)
    imported_for = BigIntegerField(default=0)
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("external_id", "imported_for"), True),)


class AlbumArtist(Table):
    """Who an album is by, in order."""

    album = _link(Album, index=False)
    artist = _link(Artist, index=False)
    position = IntegerField()

    class Meta:
        primary_key = CompositeKey("album", "artist")
        indexes = ((("artist", "album"), False),)


class Track(Table):
    """A track with its terms of sale and its counters."""

    id = BigAutoField()
    name = TextField()
    release_date = TextField(null=True)
    image = TextField(null=True)
    duration = BigIntegerField()
    description = TextField(null=True)
    album = _link(Album, null=True, on_delete="SET NULL")
    bpm = IntegerField(null=True)
    key = TextField(null=True)
    scale = TextField(null=True)
    price = DoubleField(null=True)
    currency = TextField(default="USD")
    licensing_type = TextField(default="non_exclusive_only")
    exclusive_status = TextField(default="not_available")
    exclusive_price = DoubleField(null=True)
    fingerprint_status = TextField(default="pending")
    plays = BigIntegerField(default=0)
    likes_count = BigIntegerField(default=0)
    reposts_count = BigIntegerField(default=0)
    external_id = TextField(null=True)
    imported_for = BigIntegerField(default=0)
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("external_id", "imported_for"), True),)


class TrackArtist(Table):
    """Who a track is by, in order."""

    track = _link(Track, index=False)
    artist = _link(Artist, index=False)
    position = IntegerField()

    class Meta:
        primary_key = CompositeKey("track", "artist")
        indexes = ((("artist", "track"), False),)


class Genre(Table):
    """A genre; the slug is what makes it the same."""

    id = BigAutoField()
    name = TextField(unique=True)
    display_name = TextField()


class TrackGenre(Table):
    """The genres of a track."""

    track = _link(Track, index=False)
    genre = _link(Genre)

    class Meta:
        primary_key = CompositeKey("track", "genre")


class Tag(Table):
    """A free word put on tracks and albums."""

    id = BigAutoField()
    name = TextField(unique=True)


class TrackTag(Table):
    """The tags of a track."""

    track = _link(Track, index=False)
    tag = _link(Tag)

    class Meta:
        primary_key = CompositeKey("track", "tag")


class AlbumTag(Table):
    """The tags of an album itself."""

    album = _link(Album, index=False)
    tag = _link(Tag)

    class Meta:
        primary_key = CompositeKey("album", "tag")


class Comment(Table):
    """A comment on a track; `place` orders a track's comments as a thread is read."""

    id = BigAutoField()
    track = _link(Track, index=False)
    user = _link(User)
    parent = ForeignKeyField("self", null=True, on_delete="CASCADE", lazy_load=False, backref="+")
    content = TextField()
    position = IntegerField()
    depth = IntegerField()
    deleted = BooleanField(default=False)
    place = BigIntegerField()
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("track", "place"), False),)


def tables() -> list[type[Table]]:
    """Every table, in the order in which they can be made."""
    return list(Table.__subclasses__())
