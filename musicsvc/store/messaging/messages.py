"""Create and load conversations and their messages, which only the participants can see."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from peewee import fn

from musicsvc.errors import first
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.accounts.user_search import SUMMARY as USER
from musicsvc.store.accounts.user_search import UserSummary
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.engine.sql import compiled, lock_row
from musicsvc.store.models import Conversation, Message, Participant, User


@dataclass(slots=True)
class MessageRow:
    id: int
    conversation_id: int
    message_text: str
    created_at: int
    user: UserSummary


@dataclass(slots=True)
class ConversationRow:
    id: int
    created_at: int
    users: list[UserSummary] = field(default_factory=list)
    last_message: MessageRow | None = None


MESSAGE = (Message.id, Message.conversation, Message.message_text, Message.created_at)


def _message(message_id: int, conversation_id: int, text: str, created_at: int, *user: Any) -> MessageRow:
    return MessageRow(message_id, conversation_id, text, created_at, UserSummary(*user))


def _messages() -> Any:
    return Message.select(*MESSAGE, *USER).join(User)


def get(conversation_id: int, *, actor: Identity) -> ConversationRow:
    """Return the conversation. Raises NotFound unless the actor is a participant."""
    values = first(_by_id(conversation_id, actor.user_id), "There is no such conversation.")
    return _with_contents([ConversationRow(*values)])[0]


@compiled
def _by_id(conversation_id: int, user_id: int) -> Any:
    mine = (Participant.conversation == Conversation.id) & (Participant.user == user_id)
    query = Conversation.select(Conversation.id, Conversation.created_at).join(Participant, on=mine)
    return query.where(Conversation.id == conversation_id)


def list_own(page: Page, *, actor: Identity) -> Listing[ConversationRow]:
    """Return the actor's conversations, most recently active first."""
    found = paginate(_of_participant, page, ConversationRow, actor.user_id, counted=list_blocks.CONVERSATIONS)
    _with_contents(found.rows)
    return found


def _of_participant(user_id: int) -> ListQuery:
    mine = (Participant.conversation == Conversation.id) & (Participant.user == user_id)
    keys = Conversation.select(Conversation.id).join(Participant, on=mine)
    rows = Conversation.select(Conversation.id, Conversation.created_at)
    return ListQuery(keys, rows, (Conversation.last_at.desc(), Conversation.id.desc()))


def create(user_ids: Iterable[int], *, now: int, actor: Identity) -> ConversationRow:
    conversation = Conversation.create(created_at=now, last_at=now)
    everybody = dict.fromkeys([actor.user_id, *user_ids])
    Participant.insert_many([{"conversation": conversation.id, "user": user_id} for user_id in everybody]).execute()
    return get(conversation.id, actor=actor)


def send(conversation_id: int, text: str, *, now: int, actor: Identity) -> MessageRow:
    """Add a message by the actor to the conversation. Raises NotFound unless the actor is a participant."""
    # The lock keeps last_at and the ids of messages in the same order.
    lock_row(Conversation, conversation_id)
    get(conversation_id, actor=actor)
    message = Message.create(conversation=conversation_id, user=actor.user_id, message_text=text, created_at=now)
    Conversation.update(last_at=now).where(Conversation.id == conversation_id).execute()
    author = UserSummary(actor.user_id, actor.display_name, actor.avatar)
    return MessageRow(message.id, conversation_id, text, now, author)


def list_messages(conversation_id: int, page: Page) -> Listing[MessageRow]:
    """Return the messages of a conversation, newest first."""
    return paginate(_of_conversation, page, _message, conversation_id, counted=list_blocks.MESSAGES)


def _of_conversation(conversation_id: int) -> ListQuery:
    keys = Message.select(Message.id).where(Message.conversation == conversation_id)
    return ListQuery(keys, _messages(), [Message.id.desc()])


def _with_contents(rows: Sequence[ConversationRow]) -> Sequence[ConversationRow]:
    """Add the participants, ordered by id, and the newest message to each conversation."""
    if not rows:
        return rows
    by_id = {row.id: row for row in rows}
    for conversation_id, *values in _people([*by_id]):
        by_id[conversation_id].users.append(UserSummary(*values))
    for values in _newest_messages([*by_id]):
        by_id[values[1]].last_message = _message(*values)
    return rows


@compiled
def _people(conversation_ids: Sequence[int]) -> Any:
    people = Participant.select(Participant.conversation, *USER).join(User)
    return people.where(Participant.conversation.in_(conversation_ids)).order_by(Participant.conversation, User.id)


@compiled
def _newest_messages(conversation_ids: Sequence[int]) -> Any:
    newest = Message.select(fn.MAX(Message.id)).where(Message.conversation == Conversation.id)  # one search for each
    return _messages().where(Message.id.in_(Conversation.select(newest).where(Conversation.id.in_(conversation_ids))))
