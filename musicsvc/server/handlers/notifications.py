"""Push tokens of devices, and the channels of each kind of notification."""

from musicsvc.server.schemas.messages import DeviceIn, DeviceOut, SubscriptionsIn
from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.messaging import notifications


def register_device(body: DeviceIn, caller: Identity, now: int) -> JSON:
    """Store or update a push token of the caller's device."""
    notifications.register_device(body.token, body.platform or "web", body.device_name, now=now, actor=caller)
    return {"status": "ok"}


def delete_device(body: DeviceOut, caller: Identity) -> JSON:
    """Delete a push token of the caller's device."""
    notifications.delete_device(body.token, actor=caller)
    return ok()


def show(subject: int) -> JSON:
    """Read the caller's notification settings."""
    choices = notifications.list_choices(subject)
    shaped = [
        {"notif_id": row.notif_id, "channels": {"email": row.email, "in_app": row.in_app, "mobile": row.mobile}}
        for row in choices
    ]
    return ok(subscriptions=shaped)


def choose(subject: int, body: SubscriptionsIn) -> JSON:
    """Update notification settings; absent channels keep their values."""
    chosen = [(each.notif_id, each.channels.model_dump(exclude_unset=True)) for each in body.selections]
    notifications.update_choices(subject, chosen)
    return ok()
