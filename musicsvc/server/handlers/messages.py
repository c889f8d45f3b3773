"""Private conversations between accounts, and their messages."""

from musicsvc.clock import isoformat
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.messages import ConversationIn, MessageIn
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Site, ok, paged, picked
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.messaging import messages
from musicsvc.store.messaging.messages import ConversationRow, MessageRow


def send(body: MessageIn, caller: Identity, site: Site, now: int) -> JSON:
    """Send a message to a conversation of the caller."""
    message = messages.send(body.conversation_id, body.message_text, now=now, actor=caller)
    return ok(message=_message(message, site))


def begin(body: ConversationIn, caller: Identity, site: Site, now: int) -> JSON:
    """Start a conversation with others."""
    return ok(conversation=_conversation(messages.create(body.user_ids, now=now, actor=caller), site))


def index(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the caller's conversations, the one with the newest message first."""
    return paged(messages.list_own(query.to_page(), actor=caller), _conversation, site)


def list_messages(subject: ConversationRow, query: Pages, site: Site) -> JSON:
    """List the messages of a conversation, newest first."""
    return paged(messages.list_messages(subject.id, query.to_page()), _message, site)


def _message(row: MessageRow, site: Site) -> JSON:
    user = {"user": catalog.account(row.user, site)}
    return picked(row, "id", "conversation_id", "message_text") | user | picked(row, "created_at")


def _conversation(row: ConversationRow, site: Site) -> JSON:
    """Return a conversation with its participants and its newest message."""
    return {
        "id": row.id,
        "users": [catalog.account(user, site) for user in row.users],
        "last_message": None if row.last_message is None else _message(row.last_message, site),
        "created_at": isoformat(row.created_at),
    }
