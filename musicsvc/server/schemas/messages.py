"""Requests and responses of conversations between users, and of the messages in them."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo

from musicsvc.server.schemas.answers import Answer, Timestamp, UserSummary
from musicsvc.server.schemas.fields import Body, Id, Text, require_unique
from musicsvc.store.accounts import users

MAX_OTHERS = 9


def _others(values: list[int], info: ValidationInfo) -> list[int]:
    if (info.context or {}).get("caller_id") in values:
        raise ValueError("Must not contain your own id; you are always a participant.")
    return values


class MessageIn(Body):
    """A message; the caller must be a participant of the conversation."""

    subjects: ClassVar = {"conversation_id": "conversations"}

    conversation_id: Id
    message_text: Annotated[str, Text(1, 2000)] = Field(examples=["Shall we try it a tone lower?"])


class ConversationIn(Body):
    """A conversation of the caller with one to nine other accounts."""

    references: ClassVar = {"user_ids": users.missing}

    user_ids: Annotated[
        list[Id],
        Field(min_length=1, max_length=MAX_OTHERS, examples=[[3]]),
        AfterValidator(require_unique),
        AfterValidator(_others),
    ]


class Message(Answer):
    """A message of a conversation."""

    id: int
    conversation_id: int
    message_text: str = Field(examples=["Shall we try it a tone lower?"])
    user: UserSummary
    created_at: Timestamp


class Conversation(Answer):
    """A conversation with its participants."""

    id: int
    users: list[UserSummary]
    last_message: Message | None
    created_at: Timestamp
