"""Conversations, collections, devices, notification choices."""

from functools import partial

from musicsvc.server.handlers import collections, messages, notifications
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.answers import Paged, Success
from musicsvc.server.schemas.collections import CollectionIn, CollectionListed, OneCollection
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.messaging import (
    Conversation,
    ConversationIn,
    Message,
    MessageIn,
    OneConversation,
    OneMessage,
)
from musicsvc.server.schemas.notifications import DeviceIn, DeviceOut, DeviceStored, Subscriptions, SubscriptionsIn
from musicsvc.store.messaging import messages as message_store
from musicsvc.store.messaging import notifications as notification_store
from musicsvc.store.playlists import collections as collection_store

TALK = f"{V1}/messaging"
Private = partial(Route, private=True)

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", f"{V1}/collections", collections.create, status=201, body=CollectionIn, answer=OneCollection),
    Route("GET", f"{V1}/collections", collections.index, query=Pages, extension=True, answer=Paged[CollectionListed]),
    Private("GET", f"{V1}/collections/{{id}}", collections.show, find=collection_store.get, extension=True,
            answer=OneCollection),
    Private("POST", f"{TALK}/messages", messages.send, status=201, body=MessageIn, answer=OneMessage, raises=(404,)),
    Route("POST", f"{TALK}/conversations", messages.begin, status=201, body=ConversationIn, extension=True,
          answer=OneConversation),
    Route("GET", f"{TALK}/conversations", messages.index, query=Pages, extension=True, answer=Paged[Conversation]),
    Private("GET", f"{TALK}/conversations/{{id}}/messages", messages.list_messages, find=message_store.get, query=Pages,
            extension=True, answer=Paged[Message]),
    Route("POST", f"{V1}/fcm-tokens", notifications.register_device, body=DeviceIn, answer=DeviceStored),
    Route("DELETE", f"{V1}/fcm-tokens", notifications.delete_device, body=DeviceOut, extension=True, answer=Success),
    Private("PUT", f"{V1}/notifications/{{user}}/subscriptions", notifications.choose, find=notification_store.owner,
            body=SubscriptionsIn, answer=Success),
    Private("GET", f"{V1}/notifications/{{user}}/subscriptions", notifications.show, find=notification_store.owner,
            extension=True, answer=Subscriptions),
)
# fmt: on
