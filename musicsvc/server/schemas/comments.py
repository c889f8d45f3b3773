"""Requests and responses of comments, which users write at a position of a track."""

from typing import Annotated, Any

from pydantic import Field

from musicsvc.server.schemas.answers import Answer, UserSummary
from musicsvc.server.schemas.fields import Body, Id, Text
from musicsvc.store.engagement import comments


class CommentIn(Body):
    """A comment on a track, or a reply to another comment."""

    content: Annotated[str, Text(1, 1000)] = Field(examples=["The bar before the return!"])
    position: Annotated[int, Field(strict=True, ge=0, le=100)] | None = Field(
        None,
        description="Position in the track, in percent; default: the position of the parent comment, or 0.",
        examples=[50],
    )
    parent_id: Id | None = Field(None, description="The comment to reply to, on the same track.", examples=[None])

    @classmethod
    def check_against_store(cls, sent: dict[str, Any], faults: dict[str, str], subject: Any = None) -> dict[str, str]:
        """Return an error message for `parent_id` if this comment accepts no replies, else an empty dict."""
        parent_id = sent.get("parent_id")
        if parent_id is None or "parent_id" in faults:
            return {}
        problem = comments.find_parent_problem(parent_id, subject)
        return {"parent_id": problem} if problem else {}


class Comment(Answer):
    """A comment; a deleted comment that has replies stays in the list, with empty content."""

    id: int
    content: str = Field(examples=["Is this the 1899 print?"])
    position: int = Field(examples=[12], description="Position in the track, in percent.")
    depth: int = Field(examples=[0], description="0 for a root comment, one more for each level of replies.")
    deleted: bool
    user: UserSummary | None = Field(description="The author; null if the account was deleted.")
