"""Follows, likes, reposts, playlists, collections, conversations, devices, notification choices."""

from peewee import *


def up(migrator, db):
    sqlite = isinstance(db, SqliteDatabase)
    own_id = [SQL("AUTOINCREMENT")] if sqlite else []

    class Table(Model):
        class Meta:
            database = db
            legacy_table_names = False
            strict_tables = sqlite

    class Old(Model):
        class Meta:
            database = db

    def identity():
        return BigAutoField(constraints=own_id)

    def flag(default):
        said = ("1" if default else "0") if sqlite else str(default).upper()
        return BooleanField(default=default, constraints=[SQL(f"DEFAULT {said}")])

    def link(to, null=False, index=True, on_delete="CASCADE"):
        return ForeignKeyField(to, null=null, index=index, on_delete=on_delete)

    class User(Old):
        id = BigAutoField()

        class Meta:
            table_name = "account"

    class Track(Old):
        id = BigAutoField()

        class Meta:
            table_name = "track"

    class Follow(Table):
        id = identity()
        follower = link(User, index=False)
        followed = link(User, index=False)
        created_at = BigIntegerField()

        class Meta:
            indexes = ((("follower", "followed"), True), (("follower", "id"), False), (("followed", "id"), False))
            constraints = [Check("follower_id <> followed_id")]

    class TrackLike(Table):
        track = link(Track, index=False)
        user = link(User)
        created_at = BigIntegerField()

        class Meta:
            primary_key = CompositeKey("track", "user")
            indexes = ((("track", "created_at"), False),)

    class TrackRepost(Table):
        track = link(Track, index=False)
        user = link(User)
        created_at = BigIntegerField()

        class Meta:
            primary_key = CompositeKey("track", "user")
            indexes = ((("track", "created_at"), False),)

    class Playlist(Table):
        id = identity()
        owner = link(User, index=False)
        name = TextField(constraints=[Check("length(name) BETWEEN 1 AND 250")])
        description = TextField(null=True, constraints=[Check("length(description) BETWEEN 20 AND 170")])
        image = TextField(null=True)
        public = flag(default=False)
        collaborative = flag(default=False)
        external_id = TextField(null=True)
        created_at = BigIntegerField()

        class Meta:
            indexes = ((("owner", "name"), False), (("external_id", "owner"), True))

    class PlaylistTrack(Table):
        id = identity()
        playlist = link(Playlist, index=False)
        track = link(Track)
        added_by = link(User, null=True, on_delete="SET NULL")
        added_at = BigIntegerField()

        class Meta:
            indexes = ((("playlist", "id"), False),)

    class PlaylistInvite(Table):
        id = identity()
        playlist = link(Playlist, index=False)
        user = link(User)
        state = TextField(constraints=[Check("state IN ('pending', 'accepted', 'declined')")])
        created_at = BigIntegerField()
        expires_at = BigIntegerField()
        answered_at = BigIntegerField(null=True)

        class Meta:
            indexes = ((("playlist", "user"), True),)

    class Collection(Table):
        id = identity()
        user = link(User)
        name = TextField(constraints=[Check("length(name) BETWEEN 1 AND 255")])
        description = TextField(null=True)
        created_at = BigIntegerField()

    class CollectionTrack(Table):
        collection = link(Collection, index=False)
        position = IntegerField()
        track = link(Track)

        class Meta:
            primary_key = CompositeKey("collection", "position")

    class Conversation(Table):
        id = identity()
        created_at = BigIntegerField()
        last_at = BigIntegerField()

    class Participant(Table):
        conversation = link(Conversation, index=False)
        user = link(User)

        class Meta:
            primary_key = CompositeKey("conversation", "user")

    class Message(Table):
        id = identity()
        conversation = link(Conversation, index=False)
        user = link(User)
        message_text = TextField(constraints=[Check("length(message_text) BETWEEN 1 AND 2000")])
        created_at = BigIntegerField()

        class Meta:
            indexes = ((("conversation", "id"), False),)

    class Device(Table):
        id = identity()
        token = TextField(unique=True)
        user = link(User)
        platform = TextField(constraints=[Check("platform IN ('web', 'android', 'ios')")])
        device_name = TextField(null=True)
        created_at = BigIntegerField()
        updated_at = BigIntegerField()

    class NotificationChoice(Table):
        user = link(User, index=False)
        notif_id = TextField()
        email = flag(default=True)
        in_app = flag(default=True)
        mobile = flag(default=True)

        class Meta:
            primary_key = CompositeKey("user", "notif_id")

    db.create_tables(Table.__subclasses__(), safe=False)
    db.execute_sql("CREATE INDEX comment_root ON comment (track_id, position, place) WHERE parent_id IS NULL")
