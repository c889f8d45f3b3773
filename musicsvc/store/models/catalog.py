"""Tables of the catalog: artists, albums, tracks, genres, tags and comments."""

from peewee import (
    BigAutoField,
    BigIntegerField,
    BooleanField,
    CompositeKey,
    DoubleField,
    ForeignKeyField,
    IntegerField,
    TextField,
)

from musicsvc.store.models.accounts import User
from musicsvc.store.models.table import Table, link


class Artist(Table):
    """An artist. The account `manager` may edit it. `edited_at`: as of albums and tracks, of the last edit."""

    id = BigAutoField()
    name = TextField()
    description = TextField(null=True)
    image_small = TextField(null=True)
    verified = BooleanField(default=False)
    manager = link(User, null=True, index=False)
    created_at = BigIntegerField()
    edited_at = BigIntegerField(null=True)

    class Meta:
        indexes = ((("manager", "name"), False),)


class Album(Table):
    """An album. `external_id` is its id in another service, unique per `imported_for` (managing account, or 0)."""

    id = BigAutoField()
    name = TextField()
    image = TextField(null=True)
    release_date = TextField(null=True)
    description = TextField(null=True)
    external_id = TextField(null=True)
    imported_for = BigIntegerField(default=0)
    created_at = BigIntegerField()
    upc = TextField(null=True, index=True)
    label = TextField(null=True)
    edited_at = BigIntegerField(null=True)

    class Meta:
        indexes = ((("external_id", "imported_for"), True),)


class AlbumArtist(Table):
    album = link(Album, index=False)
    artist = link(Artist, index=False)
    position = IntegerField()

    class Meta:
        primary_key = CompositeKey("album", "artist")
        indexes = ((("artist", "album"), False),)


class Track(Table):
    id = BigAutoField()
    name = TextField()
    release_date = TextField(null=True)
    image = TextField(null=True)
    duration = BigIntegerField()
    description = TextField(null=True)
    album = link(Album, null=True)
    bpm = IntegerField(null=True)
    key = TextField(null=True)
    scale = TextField(null=True)
    price = DoubleField(null=True)
    currency = TextField(default="USD")
    licensing_type = TextField(default="non_exclusive_only")
    exclusive_status = TextField(default="not_available")
    exclusive_price = DoubleField(null=True)
    fingerprint_status = TextField(default="pending")
    likes_count = BigIntegerField(default=0)
    reposts_count = BigIntegerField(default=0)
    external_id = TextField(null=True)
    imported_for = BigIntegerField(default=0)
    created_at = BigIntegerField()
    isrc = TextField(null=True, index=True)
    track_number = IntegerField(null=True)
    disc_number = IntegerField(null=True)
    explicit = BooleanField(null=True)
    edited_at = BigIntegerField(null=True)

    class Meta:
        indexes = ((("external_id", "imported_for"), True),)


class TrackArtist(Table):
    track = link(Track, index=False)
    artist = link(Artist, index=False)
    position = IntegerField()

    class Meta:
        primary_key = CompositeKey("track", "artist")
        indexes = ((("artist", "track"), False),)


class Genre(Table):
    """A genre. `name` is its slug, `display_name` the spelling with which it was created."""

    id = BigAutoField()
    name = TextField(unique=True)
    display_name = TextField()


class TrackGenre(Table):
    track = link(Track, index=False)
    genre = link(Genre, index=False)

    class Meta:
        primary_key = CompositeKey("track", "genre")
        indexes = ((("genre", "track"), False),)


class Tag(Table):
    id = BigAutoField()
    name = TextField(unique=True)


class TrackTag(Table):
    track = link(Track, index=False)
    tag = link(Tag)

    class Meta:
        primary_key = CompositeKey("track", "tag")


class AlbumTag(Table):
    album = link(Album, index=False)
    tag = link(Tag)

    class Meta:
        primary_key = CompositeKey("album", "tag")


class Comment(Table):
    """A comment on a track. Ordering by `place` puts all direct and indirect replies right after their comment."""

    id = BigAutoField()
    track = link(Track, index=False)
    user = link(User, null=True)  # None: a deleted comment of a deleted account
    parent = ForeignKeyField("self", null=True, on_delete="CASCADE", lazy_load=False, backref="+")
    content = TextField()
    position = IntegerField()
    depth = IntegerField()
    deleted = BooleanField(default=False)
    place = BigIntegerField()
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("track", "place"), False),)


# Finds the neighbours of a new thread without reading replies.
Comment.add_index(
    Comment.index(Comment.track, Comment.position, Comment.place, name="comment_root", where=Comment.parent.is_null())
)


class Merged(Table):
    """The names and codes by which imports find a track, album or artist, since another was merged into it (`into`).

    `code`: the ISRC or UPC. `album`: that of a track. `former`: the id of the one that was merged.
    """

    id = BigAutoField()
    kind = IntegerField()  # 1: track, 2: album, 3: artist
    former = BigIntegerField(column_name="former_id")
    into = BigIntegerField(column_name="into_id")
    name = TextField()
    code = TextField(null=True)
    external_id = TextField(null=True)
    imported_for = BigIntegerField()
    album = BigIntegerField(null=True, index=True, column_name="album_id")

    class Meta:
        indexes = tuple((("kind", column), False) for column in ("former", "into", "name", "code", "external_id"))


class MergedCredit(Table):
    """An artist of a track, or the first artist of an album, that was merged into another one."""

    merged = link(Merged, index=False)
    artist = BigIntegerField(index=True, column_name="artist_id")

    class Meta:
        primary_key = CompositeKey("merged", "artist")


class ListBlock(Table):
    """The number of rows in a part of a long list, such as a playlist's tracks. Triggers keep the number up to date."""

    list = IntegerField()
    owner = BigIntegerField()  # the id of the row whose list it is, or 0
    first_key = BigIntegerField()  # with `first_id`: the sort key of the first row
    first_id = BigIntegerField()
    slot = IntegerField()  # of concurrent transactions on PostgreSQL; the sum over all slots counts
    size = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("list", "owner", "first_key", "first_id", "slot")


class TrackRank(Table):
    """A track of an artist with thousands of tracks, and its number of plays, to list the artist's tracks by plays."""

    artist = BigIntegerField(column_name="artist_id")
    plays = BigIntegerField()
    track = BigIntegerField(column_name="track_id")

    class Meta:
        primary_key = CompositeKey("artist", "plays", "track")
