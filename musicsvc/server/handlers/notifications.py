"""Devices, and by which channels an account wants to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.messaging import devices, notifications

if TYPE_CHECKING:
    from musicsvc.server.schemas.notifications import DeviceIn, DeviceOut, SubscriptionsIn
    from musicsvc.store.accounts.tokens import Identity


def register_device(body: DeviceIn, caller: Identity, now: int) -> JSON:
    """Store or refresh a push token of the caller's device."""
    devices.register(body.token, body.platform or "web", body.device_name, now=now, actor=caller)
    return {"status": "ok"}


def delete_device(body: DeviceOut, caller: Identity) -> JSON:
    """Forget a push token of the caller's device."""
    devices.delete(body.token, actor=caller)
    return ok()


def show(subject: int) -> JSON:
    """Read what the caller has chosen."""
    choices = notifications.listing(subject)
    shaped = [
        {"notif_id": row.notif_id, "channels": {"email": row.email, "in_app": row.in_app, "mobile": row.mobile}}
        for row in choices
    ]
    return ok(subscriptions=shaped)


def choose(subject: int, body: SubscriptionsIn) -> JSON:
    """Merge choices in; a channel that is absent keeps its value."""
    chosen = [(each.notif_id, each.channels.model_dump(exclude_unset=True)) for each in body.selections]
    notifications.choose(subject, chosen)
    return ok()
