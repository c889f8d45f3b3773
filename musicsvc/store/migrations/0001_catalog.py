"""Accounts, access, tokens and the catalog."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []  # ids of deleted rows are not reused

    class Table(Model):
        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite

    def identity():
        return BigAutoField(constraints=own_id)

    def flag():
        return BooleanField(default=False, constraints=[SQL("DEFAULT 0" if sqlite else "DEFAULT FALSE")])

    def counter():
        return BigIntegerField(default=0, constraints=[SQL("DEFAULT 0")])

    def one_of(name, values, default):
        quoted = ", ".join(f"'{value}'" for value in values)
        return TextField(default=default, constraints=[Check(f'"{name}" IN ({quoted})')])

    def link(to, null=False, index=True, on_delete="CASCADE"):
        return ForeignKeyField(to, null=null, index=index, on_delete=on_delete)

    class User(Table):
        id = identity()
        email = TextField(constraints=[Check("length(email) BETWEEN 3 AND 255")])
        email_key = TextField(unique=True)
        display_name = TextField()
        avatar = TextField(null=True)
        password_hash = TextField(null=True)
        admin = flag()
        api_access = flag()
        reports_plays = flag()
        suspended_at = BigIntegerField(null=True)
        suspended_reason = TextField(null=True)
        created_at = BigIntegerField()

        class Meta:
            table_name = "account"

    class AccessRequest(Table):
        id = identity()
        email = TextField()
        email_key = TextField(index=True)
        use_case = TextField()
        volume = TextField()
        organization = TextField()
        state = one_of("state", ["pending", "approved", "denied"], "pending")
        reason = TextField(null=True)
        created_at = BigIntegerField()
        decided_at = BigIntegerField(null=True)

    AccessRequest.add_index(
        SQL("CREATE UNIQUE INDEX access_request_pending ON access_request (email_key) WHERE state = 'pending'")
    )

    class Token(Table):
        id = identity()
        user = link(User)
        name = TextField()
        digest = BlobField(unique=True, constraints=[Check("length(digest) = 32")])
        last_four = TextField()
        created_at = BigIntegerField()
        expires_at = BigIntegerField()
        last_used_at = BigIntegerField(null=True)
        revoked_at = BigIntegerField(null=True)
        revoked_reason = TextField(null=True)

    class Artist(Table):
        id = identity()
        name = TextField(constraints=[Check("length(name) BETWEEN 1 AND 255")])
        description = TextField(null=True)
        image_small = TextField(null=True)
        verified = flag()
        manager = link(User, null=True, index=False, on_delete="SET NULL")
        created_at = BigIntegerField()

        class Meta:
            indexes = ((("manager", "name"), False),)

    class Album(Table):
        id = identity()
        name = TextField(constraints=[Check("length(name) BETWEEN 1 AND 255")])
        image = TextField(null=True)
        release_date = TextField(null=True, constraints=[Check("length(release_date) = 10")])
        description = TextField(null=True)
        external_id = TextField(null=True)
        imported_for = counter()
        created_at = BigIntegerField()

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
        id = identity()
        name = TextField(constraints=[Check("length(name) BETWEEN 1 AND 255")])
        release_date = TextField(null=True, constraints=[Check("length(release_date) = 10")])
        image = TextField(null=True)
        duration = BigIntegerField(constraints=[Check("duration BETWEEN 0 AND 86400000")])
        description = TextField(null=True)
        album = link(Album, null=True, on_delete="SET NULL")
        bpm = IntegerField(null=True, constraints=[Check("bpm BETWEEN 20 AND 400")])
        key = TextField(null=True)
        scale = TextField(null=True, constraints=[Check("scale IN ('Major', 'Minor')")])
        price = DoubleField(null=True, constraints=[Check("price >= 0")])
        currency = TextField(default="USD", constraints=[Check("length(currency) = 3")])
        licensing_type = one_of(
            "licensing_type", ["non_exclusive_only", "both", "exclusive_only"], "non_exclusive_only"
        )
        exclusive_status = one_of("exclusive_status", ["available", "not_available", "sold"], "not_available")
        exclusive_price = DoubleField(null=True, constraints=[Check("exclusive_price >= 0")])
        fingerprint_status = one_of("fingerprint_status", ["pending", "processing", "completed", "failed"], "pending")
        likes_count = counter()
        reposts_count = counter()
        external_id = TextField(null=True)
        imported_for = counter()
        created_at = BigIntegerField()

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
        id = identity()
        name = TextField(unique=True)
        display_name = TextField()

    class TrackGenre(Table):
        track = link(Track, index=False)
        genre = link(Genre)

        class Meta:
            primary_key = CompositeKey("track", "genre")

    class Tag(Table):
        id = identity()
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
        id = identity()
        track = link(Track, index=False)
        user = link(User)
        parent = ForeignKeyField("self", null=True, on_delete="CASCADE")
        content = TextField()
        position = IntegerField(constraints=[Check("position BETWEEN 0 AND 100")])
        depth = IntegerField(constraints=[Check("depth >= 0")])
        deleted = flag()
        place = BigIntegerField()
        created_at = BigIntegerField()

        class Meta:
            indexes = ((("track", "place"), False),)

    db.create_tables(Table.__subclasses__(), safe=False)
