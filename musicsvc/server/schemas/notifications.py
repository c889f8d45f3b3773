"""Requests and responses of devices, which receive push notifications, and of notification settings."""

from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator, model_validator

from musicsvc.server.schemas.answers import Answer, Success
from musicsvc.server.schemas.fields import TRIMMED, Body, Opaque, Text

MAX_TOKEN = 500
MAX_KEYS = 10
Flag = Annotated[bool, Field(strict=True)]
NotifId = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, pattern="^[a-z0-9_]{1,64}$")]
PushToken = Annotated[Opaque, Field(max_length=MAX_TOKEN)]


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("This field is required.")
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
