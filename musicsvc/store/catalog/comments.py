"""Comments on tracks, in the order in which a thread is read.

`place` is that order: every comment stands after the whole thread of those before it. A new one takes a place between
its neighbours; where none is left, all places of the track are given anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

from peewee import fn

from musicsvc.errors import Forbidden, Invalid, NotFound
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.engine.pagination import Listing, Page, paginate
from musicsvc.store.engine.sql import run
from musicsvc.store.models import Artist, Comment, Track, TrackArtist, User

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity

GAP = 1 << 40  # between the places of neighbours, so that many comments can be put between them
LAST = 1 << 62
RENUMBER = """
    UPDATE comment SET place = numbered.at * ? FROM
    (SELECT id, row_number() OVER (ORDER BY place, id) AS at FROM comment WHERE track_id = ?) AS numbered
    WHERE comment.id = numbered.id
"""


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
    rows = Comment.select(*COLUMNS).join(User, on=(Comment.user == User.id))
    keys = Comment.select(Comment.id).where(Comment.track == track_id)
    return paginate(keys, rows, [Comment.place, Comment.id], page, CommentRow)


def create(
    track_id: int, content: str, *, position: int | None = None, parent_id: int | None = None, now: int, actor: Identity
) -> CommentRow:
    """A new comment, after those of its position or as the last reply to its parent; Invalid where that takes none.

    Without a position a reply has that of its parent, a root 0.
    """
    _lock(track_id)
    if parent_id is not None and (problem := parent_problem(parent_id, track_id)):
        raise Invalid({"parent_id": problem})
    parent = None if parent_id is None else Comment.get_by_id(parent_id)
    if position is None:
        position = parent.position if parent else 0
    values: dict[str, Any] = {
        "content": content,
        "position": position,
        "depth": parent.depth + 1 if parent else 0,
        "deleted": False,
        "created_at": now,
    }
    place = _free_place(track_id, parent, position)
    made = Comment.create(track=track_id, user=actor.user_id, parent=parent_id, place=place, **values)
    return CommentRow(made.id, user_id=actor.user_id, display_name=actor.display_name, avatar=actor.avatar, **values)


def parent_problem(parent_id: int, track_id: int) -> str | None:
    """Why nobody can reply to this comment on the track, None where one can."""
    parent: Comment | None = Comment.get_or_none(Comment.id == parent_id)
    if parent is None:
        return f"There is no {parent_id}."
    if parent.track != track_id:
        return "That comment is on another track."
    return "That comment was deleted." if parent.deleted else None


def removable(comment_id: int, *, actor: Identity) -> Comment:
    """The comment, for its author and for who manages an artist of the track; raises NotFound and Forbidden."""
    comment: Comment | None = Comment.get_or_none(Comment.id == comment_id)
    if comment is None:
        raise NotFound("There is no such comment.")
    managed = (
        TrackArtist.select().join(Artist).where(TrackArtist.track == comment.track, Artist.manager == actor.user_id)
    )
    if comment.user != actor.user_id and not managed.exists():
        raise Forbidden("This comment is not yours, nor do you manage its track.")
    return comment


def delete(comment: Comment) -> None:
    """Take the comment away; while it has replies it keeps its place without its text. Harmless when repeated.

    Deleted ones that were kept for this reply alone go with it.
    """
    _lock(comment.track)
    found: Comment | None = Comment.get_or_none(Comment.id == comment.id)
    if found is None or found.deleted:
        return
    following = _on(found.track).where(Comment.place > found.place).order_by(Comment.place).first()
    depth_after = following.depth if following else 0
    if depth_after > found.depth:
        Comment.update(deleted=True, content="").where(Comment.id == found.id).execute()
        return
    start = _start_of_emptied(found, depth_after)
    gone = (Comment.track == found.track) & Comment.place.between(start, found.place)
    if start < found.place:
        # A chain may be deeper than the 1,000 levels to which SQLite cascades.
        Comment.update(parent=None).where(gone).execute()
    Comment.delete().where(gone).execute()


def _start_of_emptied(comment: Comment, depth_after: int) -> int:
    """The place of the topmost deleted comment that has this one under it and nothing else; else the comment's own."""
    start, depth = comment.place, comment.depth
    if depth > depth_after:
        above = _on(comment.track).where(Comment.place < comment.place).order_by(Comment.place.desc())
        for row in above.limit(depth - depth_after).iterator():
            if row.depth != depth - 1 or not row.deleted:
                break
            start, depth = row.place, row.depth
    return int(start)


def _lock(track_id: int) -> None:
    """Let one comment of the track be written or deleted at a time."""
    list(lock_rows(Track.select(Track.id).where(Track.id == track_id)).tuples().iterator())


def _on(track_id: Any) -> Any:
    columns = (Comment.id, Comment.place, Comment.depth, Comment.deleted)
    return Comment.select(*columns).where(Comment.track == track_id)


def _free_place(track_id: int, parent: Comment | None, position: int) -> int:
    """A place after all that is to be read before the new comment."""
    end = _end_of_thread(track_id, parent.id, parent.depth) if parent else _next_root(track_id, position)
    before = Comment.select(fn.MAX(Comment.place)).where(Comment.track == track_id)
    start = (before if end is None else before.where(Comment.place < end)).scalar() or 0
    room = (LAST if end is None else end) - start
    if room < 2:  # noqa: PLR2004 - no place between
        return _renumbered(track_id, parent, position)
    # The square root leaves room on both sides: for many more to follow, and for replies to each.
    return start + (GAP if end is None and room > GAP else isqrt(room))


def _next_root(track_id: int, position: int) -> int | None:
    """The place of the first root at a later position."""
    later = Comment.select(Comment.place).where(
        Comment.track == track_id, Comment.parent.is_null(), Comment.position > position
    )
    found: int | None = later.order_by(Comment.position, Comment.place).limit(1).scalar()
    return found


def _end_of_thread(track_id: int, parent_id: int, depth: int) -> int | None:
    """The place of the first comment after the parent and everything under it."""
    place = Comment.select(Comment.place).where(Comment.id == parent_id)
    after = Comment.select(Comment.place).where(
        Comment.track == track_id, Comment.place > place, Comment.depth <= depth
    )
    found: int | None = after.order_by(Comment.place).limit(1).scalar()
    return found


def _renumbered(track_id: int, parent: Comment | None, position: int) -> int:
    """Give the track's comments places with gaps between them; then a free one."""
    gap = min(GAP, LAST // (Comment.select().where(Comment.track == track_id).count() + 2))
    run(RENUMBER, gap, track_id)
    return _free_place(track_id, parent, position)
