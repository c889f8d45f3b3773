"""Tables of conversations, messages, devices and notification settings."""

from peewee import BigAutoField, BigIntegerField, BooleanField, CompositeKey, TextField

from musicsvc.store.models.accounts import User
from musicsvc.store.models.table import Table, link


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
