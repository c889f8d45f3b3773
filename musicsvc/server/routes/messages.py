"""Endpoints of private conversations between accounts, and of their messages."""

from musicsvc.server.handlers import messages
from musicsvc.server.routes.paths import V1
from musicsvc.server.routes.route import Route
from musicsvc.server.schemas.answers import Paged, one
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.messages import (
    Conversation,
    ConversationIn,
    Message,
    MessageIn,
)
from musicsvc.store.messaging.messages import get

MESSAGES, CONVERSATIONS = f"{V1}/messaging/messages", f"{V1}/messaging/conversations"

# fmt: off
ROUTES: tuple[Route, ...] = (
    Route("POST", MESSAGES, messages.send, status=201, body=MessageIn, answer=one("message", Message),
          raises=(404,), private=True),
    Route("POST", CONVERSATIONS, messages.begin, status=201, body=ConversationIn, extension=True,
          answer=one("conversation", Conversation)),
    Route("GET", CONVERSATIONS, messages.index, query=Pages, extension=True, answer=Paged[Conversation]),
    Route("GET", f"{CONVERSATIONS}/{{id}}/messages", messages.list_messages, find=get, query=Pages,
          private=True, extension=True, answer=Paged[Message]),
)
# fmt: on
