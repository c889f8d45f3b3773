"""Endpoints of private conversations between accounts, of devices and of choices of notifications."""

from musicsvc.server.handlers import messages, notifications
from musicsvc.server.routes.route import V1, Added, Docs, Route
from musicsvc.server.schemas.answers import Paged, Success, one
from musicsvc.server.schemas.messages import Conversation, DeviceStored, Message, Subscriptions
from musicsvc.store.messaging.messages import get
from musicsvc.store.messaging.notifications import require_own

MESSAGES, CONVERSATIONS = f"{V1}/messaging/messages", f"{V1}/messaging/conversations"
DEVICES, CHOICES = f"{V1}/fcm-tokens", f"{V1}/notifications/{{user}}/subscriptions"


# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", MESSAGES, messages.send, status=201, keyed=True, answer=one("message", Message),
          private=True, docs=Docs(raises=(404,))),
    Added("POST", CONVERSATIONS, messages.begin, status=201, keyed=True, answer=one("conversation", Conversation)),
    Added("GET", CONVERSATIONS, messages.index, answer=Paged[Conversation]),
    Added("GET", f"{CONVERSATIONS}/{{id}}/messages", messages.list_messages, find=get, private=True,
          answer=Paged[Message]),
    Route("POST", DEVICES, notifications.register_device, answer=DeviceStored),
    Added("DELETE", DEVICES, notifications.delete_device, answer=Success),
    Route("PUT", CHOICES, notifications.choose, find=require_own, private=True, answer=Success),
    Added("GET", CHOICES, notifications.show, find=require_own, private=True, answer=Subscriptions),
)
# fmt: on
