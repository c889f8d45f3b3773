"""Push tokens of devices. A push token belongs to the account that registered it last."""

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.models import Device

PLATFORMS = ("web", "android", "ios")


def register(token: str, platform: str, device_name: str | None, *, now: int, actor: Identity) -> None:
    """Store the push token as the actor's, even if it belonged to another account."""
    values = {"user": actor.user_id, "platform": platform, "device_name": device_name, "updated_at": now}
    Device.insert(token=token, created_at=now, **values).on_conflict(
        conflict_target=[Device.token], update=values
    ).execute()


def delete(token: str, *, actor: Identity) -> None:
    Device.delete().where(Device.token == token, Device.user == actor.user_id).execute()
