"""Build the JSON of private conversations and their messages."""

from musicsvc.clock import isoformat
from musicsvc.server.shapes import users
from musicsvc.server.shapes.envelope import JSON, Site
from musicsvc.store.messaging.messages import ConversationRow, MessageRow


def message(row: MessageRow, site: Site) -> JSON:
    return {
        "id": row.id,
        "conversation_id": row.conversation_id,
        "message_text": row.message_text,
        "user": users.summary(*row.user, site),
        "created_at": isoformat(row.created_at),
    }


def conversation(row: ConversationRow, site: Site) -> JSON:
    """Return a conversation with its participants and its newest message."""
    return {
        "id": row.id,
        "users": [users.summary(*user, site) for user in row.users],
        "last_message": None if row.last_message is None else message(row.last_message, site),
        "created_at": isoformat(row.created_at),
    }
