"""Notification settings: the channels by which an account receives each kind of notification. Default: all channels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from musicsvc.errors import Forbidden, Invalid, NotFound
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.sql import by_code_point, compiled, lock_row
from musicsvc.store.models import Device, NotificationChoice, User

DIGITS = 16  # of the largest id
MOST = 1_000  # kinds of notifications of an account, which are read at once
TOO_MANY = f"An account has settings for at most {MOST:,} kinds of notifications."


class Choice(NamedTuple):
    """For one kind of notification (`notif_id`), the channels that an account has enabled."""

    notif_id: str
    email: bool
    in_app: bool
    mobile: bool


def require_own(user: str, *, actor: Identity) -> int:
    """Return the actor's id if `user` is this id or "me". Raises Forbidden for another id, NotFound for other text."""
    if user == "me" or user == str(actor.user_id):
        return actor.user_id
    # The length is checked first, so that no huge number is parsed.
    if user.isascii() and user.isdigit() and user[0] != "0" and len(user) <= DIGITS and int(user) < 1 << 53:
        raise Forbidden("These are another account's notifications.")
    raise NotFound("There is no such account.")


def list_choices(user_id: int) -> Sequence[Choice]:
    """Return the notification settings that the account has stored, ordered by `notif_id`."""
    return [Choice(name, *map(bool, channels)) for name, *channels in _choices(user_id)]


@compiled
def _choices(user_id: int) -> Any:
    fields = [getattr(NotificationChoice, name) for name in Choice._fields]
    query = NotificationChoice.select(*fields).where(NotificationChoice.user == user_id)
    return query.order_by(by_code_point(NotificationChoice.notif_id))


def update_choices(user_id: int, selections: Iterable[tuple[str, Mapping[str, bool]]]) -> None:
    """Update settings from pairs of `notif_id` and {channel: enabled}. Channels that a pair omits are not changed.

    Raises Invalid if the account gets settings for too many kinds of notifications. One that has more, from a version
    without this bound, can change these.
    """
    lock_row(User, user_id)
    kinds = NotificationChoice.select().where(NotificationChoice.user == user_id)
    most = max(MOST, kinds.count())
    merged: dict[str, dict[str, bool]] = {}
    for notif_id, channels in selections:
        merged.setdefault(notif_id, {}).update(channels)
    for notif_id, channels in merged.items():
        insert = NotificationChoice.insert(user=user_id, notif_id=notif_id, **channels)
        target = [NotificationChoice.user, NotificationChoice.notif_id]
        if channels:
            insert.on_conflict(conflict_target=target, update=channels).execute()
        else:
            insert.on_conflict(conflict_target=target, action="IGNORE").execute()
    if kinds.count() > most:
        raise Invalid({"selections": TOO_MANY})


def register_device(token: str, platform: str, device_name: str | None, *, now: int, actor: Identity) -> None:
    """Store the push token as the actor's, even if it belonged to another account."""
    values = {"user": actor.user_id, "platform": platform, "device_name": device_name, "updated_at": now}
    Device.insert(token=token, created_at=now, **values).on_conflict(
        conflict_target=[Device.token], update=values
    ).execute()


def delete_device(token: str, *, actor: Identity) -> None:
    Device.delete().where(Device.token == token, Device.user == actor.user_id).execute()
