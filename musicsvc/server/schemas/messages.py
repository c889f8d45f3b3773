"""Requests and responses of conversations and their messages, and of devices and settings of notifications."""

from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from musicsvc.server.schemas.answers import Answer, Success, Timestamp, UserSummary
from musicsvc.server.schemas.fields import TRIMMED, Body, Id, Opaque, Text, require_unique
from musicsvc.server.schemas.reading import REQUIRED
from musicsvc.store.accounts import users

MAX_OTHERS = 9
MAX_TOKEN = 500
MAX_KEYS = 10
Flag = Annotated[bool, Field(strict=True)]
NotifId = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, pattern="^[a-z0-9_]{1,64}$")]
PushToken = Annotated[Opaque, Field(min_length=1, max_length=MAX_TOKEN)]


def _others(values: list[int], info: ValidationInfo) -> list[int]:
    if (info.context or {}).get("caller_id") in values:
        raise ValueError("Must not contain your own id; you are always a participant.")
    return values


class MessageIn(Body):
    """A message; the caller must be a participant of the conversation."""

    subjects: ClassVar = {"conversation_id": "conversations"}

    conversation_id: Id
    message_text: Annotated[str, Text(1, 2000)] = Field(examples=["Shall we try it a tone lower?"])


class ConversationIn(Body):
    """A conversation of the caller with one to nine other accounts."""

    references: ClassVar = {"user_ids": users.missing}

    user_ids: Annotated[
        list[Id],
        Field(min_length=1, max_length=MAX_OTHERS, examples=[[3]], json_schema_extra={"uniqueItems": True}),
        AfterValidator(require_unique),
        AfterValidator(_others),
    ]


class Message(Answer):
    """A message of a conversation."""

    id: int
    conversation_id: int
    message_text: str = Field(examples=["Shall we try it a tone lower?"])
    user: UserSummary
    created_at: Timestamp


class Conversation(Answer):
    """A conversation with its participants."""

    id: int
    users: list[UserSummary]
    last_message: Message | None
    created_at: Timestamp


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError(REQUIRED)
    return value


class DeviceIn(Body):
    """The push token of a device of the caller, to store or update."""

    token: PushToken = Field(examples=["fcm:a-token-of-this-device"])
    platform: Annotated[Literal["web", "android", "ios"], TRIMMED] | None = "web"
    device_name: Annotated[str, Text(0, 200)] | None = Field(None, examples=["Clara's phone"])

    _token = field_validator("token")(_not_blank)


class DeviceOut(Body):
    """A push token to delete."""

    token: PushToken = Field(examples=["fcm:a-token-of-this-device"])

    _token = field_validator("token")(_not_blank)


class Channels(Body):
    """Notification channels to switch on or off; absent channels keep their values."""

    model_config = ConfigDict(extra="forbid")

    email: Flag = Field(default_factory=bool)
    in_app: Flag = Field(default_factory=bool)
    mobile: Flag = Field(default_factory=bool)

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, value: Any) -> Any:
        """Keep only a few of the unknown keys, because each of them becomes an error message in the response."""
        if not isinstance(value, dict) or len(value) <= MAX_KEYS:
            return value
        known = {name: value[name] for name in cls.model_fields if name in value}
        return dict(islice(value.items(), MAX_KEYS)) | known


class Selection(Body):
    """The channels to change for one kind of notification."""

    notif_id: NotifId = Field(examples=["new_follower"])
    channels: Channels


class SubscriptionsIn(Body):
    """The notification settings to change."""

    selections: Annotated[list[Selection], Field(max_length=100)]


class DeviceStored(Answer):
    """A response that confirms that the push token is stored."""

    status: Literal["ok"]


class ChannelsChosen(Answer):
    """Whether each notification channel is on."""

    email: bool
    in_app: bool
    mobile: bool


class Subscription(Answer):
    """The channels of one kind of notification."""

    notif_id: str = Field(examples=["new_follower"])
    channels: ChannelsChosen


class Subscriptions(Success):
    """A response with all notification settings."""

    subscriptions: list[Subscription]
