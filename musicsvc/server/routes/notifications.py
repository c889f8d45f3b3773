"""Endpoints to register devices for push notifications and to read or change notification settings."""

from musicsvc.server.handlers import notifications
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.answers import Success
from musicsvc.server.schemas.notifications import DeviceIn, DeviceOut, DeviceStored, Subscriptions, SubscriptionsIn
from musicsvc.store.messaging.notifications import require_own

DEVICES, CHOICES = f"{V1}/fcm-tokens", f"{V1}/notifications/{{user}}/subscriptions"

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", DEVICES, notifications.register_device, body=DeviceIn, answer=DeviceStored),
    Route("DELETE", DEVICES, notifications.delete_device, body=DeviceOut, extension=True, answer=Success),
    Route("PUT", CHOICES, notifications.choose, find=require_own, private=True,
          body=SubscriptionsIn, answer=Success),
    Route("GET", CHOICES, notifications.show, find=require_own, private=True,
          extension=True, answer=Subscriptions),
)
# fmt: on
