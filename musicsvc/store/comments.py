"""Comments on tracks, in the order in which a thread is read."""

from __future__ import annotations

from dataclasses import dataclass

from musicsvc.store.models import Comment, User
from musicsvc.store.pagination import Listing, Page, paginate

GAP = 1 << 20  # between the places of neighbours, so that a comment can be put between them


@dataclass(slots=True)
class CommentRow:
    """A comment with its author; `position` in percent of the track, `depth` 0 for a root."""

    id: int
    content: str
    position: int
    depth: int
    deleted: bool
    user_id: int
    display_name: str
    avatar: str | None
    created_at: int


COLUMNS = (
    Comment.id,
    Comment.content,
    Comment.position,
    Comment.depth,
    Comment.deleted,
    User.id,
    User.display_name,
    User.avatar,
    Comment.created_at,
)


def of_track(track_id: int, page: Page) -> Listing[CommentRow]:
    """The track's comments: roots by position, then time; replies under their parent."""
    query = Comment.select(*COLUMNS).join(User, on=(Comment.user == User.id)).where(Comment.track == track_id)
    total = Comment.select().where(Comment.track == track_id).count()
    return paginate(query.order_by(Comment.place, Comment.id), page, CommentRow, total)
