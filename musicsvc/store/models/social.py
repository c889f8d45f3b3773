"""Tables of follows, likes, reposts, playlists and collections."""

from peewee import BigAutoField, BigIntegerField, BooleanField, CompositeKey, IntegerField, TextField

from musicsvc.store.models.accounts import User
from musicsvc.store.models.catalog import Track
from musicsvc.store.models.table import Table, link


class Follow(Table):
    """The account `follower` follows the account `followed`. Newer follows have larger ids."""

    id = BigAutoField()
    follower = link(User, index=False)
    followed = link(User, index=False)
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("follower", "followed"), True), (("follower", "id"), False), (("followed", "id"), False))


class TrackLike(Table):
    track = link(Track, index=False)
    user = link(User, index=False)
    created_at = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("track", "user")
        indexes = ((("track", "created_at"), False), (("user", "created_at", "track"), False))


class TrackRepost(Table):
    track = link(Track, index=False)
    user = link(User, index=False)
    created_at = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("track", "user")
        indexes = ((("track", "created_at"), False), (("user", "created_at", "track"), False))


class EngagementDay(Table):
    """Likes and reposts of a track, album or artist that were given on one day and not withdrawn since."""

    kind = IntegerField()  # 1: track, 2: album, 3: artist
    subject = BigIntegerField()  # the id of the track, album or artist
    day = IntegerField()  # since 1970-01-01
    likes = BigIntegerField()
    reposts = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("kind", "subject", "day")


class Playlist(Table):
    """A playlist. Collaborators may edit it while `collaborative` is true."""

    id = BigAutoField()
    owner = link(User, index=False)
    name = TextField()
    description = TextField(null=True)
    image = TextField(null=True)
    public = BooleanField(default=False)
    collaborative = BooleanField(default=False)
    external_id = TextField(null=True)
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("owner", "name"), False), (("external_id", "owner"), True), (("owner", "id"), False))


class PlaylistTrack(Table):
    """A track in a playlist. Tracks are ordered by `id`, and a track may occur several times."""

    id = BigAutoField()
    playlist = link(Playlist, index=False)
    track = link(Track)
    added_by = link(User, null=True)
    added_at = BigIntegerField()

    class Meta:
        indexes = ((("playlist", "id"), False),)


class PlaylistInvite(Table):
    """An invitation to edit a playlist. The invited user becomes a collaborator by accepting it before it expires."""

    id = BigAutoField()
    playlist = link(Playlist, index=False)
    user = link(User)
    state = TextField()
    created_at = BigIntegerField()
    expires_at = BigIntegerField()
    answered_at = BigIntegerField(null=True)

    class Meta:
        indexes = ((("playlist", "user"), True),)


class Collection(Table):
    """An account's private, named list of tracks."""

    id = BigAutoField()
    user = link(User, index=False)
    name = TextField()
    description = TextField(null=True)
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("user", "id"), False),)


class CollectionTrack(Table):
    collection = link(Collection, index=False)
    position = IntegerField()
    track = link(Track)

    class Meta:
        primary_key = CompositeKey("collection", "position")


class Conversation(Table):
    """A conversation. `last_at` is the time of its newest message, or of its creation."""

    id = BigAutoField()
    created_at = BigIntegerField()
    last_at = BigIntegerField()


class Participant(Table):
    conversation = link(Conversation, index=False)
    user = link(User)

    class Meta:
        primary_key = CompositeKey("conversation", "user")


class Message(Table):
    id = BigAutoField()
    conversation = link(Conversation, index=False)
    user = link(User)
    message_text = TextField()
    created_at = BigIntegerField()

    class Meta:
        indexes = ((("conversation", "id"), False),)


class Device(Table):
    """The push token of a device. It belongs to the account that registered it last."""

    id = BigAutoField()
    token = TextField(unique=True)
    user = link(User)
    platform = TextField()
    device_name = TextField(null=True)
    created_at = BigIntegerField()
    updated_at = BigIntegerField()


class NotificationChoice(Table):
    """The channels by which an account receives one kind of notification."""

    user = link(User, index=False)
    notif_id = TextField()
    email = BooleanField(default=True)
    in_app = BooleanField(default=True)
    mobile = BooleanField(default=True)

    class Meta:
        primary_key = CompositeKey("user", "notif_id")
