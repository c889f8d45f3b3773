"""Private conversations between accounts, and their messages."""

from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.messages import ConversationIn, MessageIn
from musicsvc.server.shapes import messages as shapes
from musicsvc.server.shapes.envelope import JSON, Site, ok, paginator
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.messaging import messages
from musicsvc.store.messaging.messages import ConversationRow


def send(body: MessageIn, caller: Identity, site: Site, now: int) -> JSON:
    """Send a message to a conversation of the caller."""
    message = messages.send(body.conversation_id, body.message_text, now=now, actor=caller)
    return ok(message=shapes.message(message, site))


def begin(body: ConversationIn, caller: Identity, site: Site, now: int) -> JSON:
    """Start a conversation with others."""
    return ok(conversation=shapes.conversation(messages.create(body.user_ids, now=now, actor=caller), site))


def index(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the caller's conversations, the one with the newest message first."""
    found = messages.list_own(query.to_page(), actor=caller)
    return ok(pagination=paginator(found, [shapes.conversation(row, site) for row in found.rows]))


def list_messages(subject: ConversationRow, query: Pages, site: Site) -> JSON:
    """List the messages of a conversation, newest first."""
    found = messages.list_messages(subject.id, query.to_page())
    return ok(pagination=paginator(found, [shapes.message(row, site) for row in found.rows]))
