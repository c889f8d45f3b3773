"""Create, list and delete comments on tracks. Sorting by the column `place` puts replies right after their comment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from peewee import Case, fn

from musicsvc.errors import Forbidden, Invalid, existing
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, columns, paginate
from musicsvc.store.engine.sql import batches, compiled, lock_rows
from musicsvc.store.models import Artist, Comment, Track, TrackArtist, User

NONE = "There is no such comment."
GAP = 1 << 40  # between neighbouring places, so that many comments fit between them
LAST = 1 << 62
IS_REPLY = Comment.parent.is_null(is_null=False)
FEW = 64  # comments whose places are spread first where there is no room


@dataclass(slots=True)
class CommentRow:
    """A comment with its author, who is None if the account is deleted.

    `position`: percent of the track. `depth`: 0 for a comment, 1 for a reply, etc.
    """

    id: int
    content: str
    position: int
    depth: int
    deleted: bool
    user_id: int | None
    display_name: str | None
    avatar: str | None
    created_at: int


COLUMNS = columns(CommentRow, Comment, user_id=User.id, display_name=User.display_name, avatar=User.avatar)


def list_by_track(track_id: int, page: Page) -> Listing[CommentRow]:
    """Return the track's comments, ordered by position, then time. Each comment is followed by its replies."""
    return paginate(_by_track, page, CommentRow, track_id, counted=list_blocks.COMMENTS)


def _by_track(track_id: int) -> ListQuery:
    rows = Comment.select(*COLUMNS).join(User, "LEFT JOIN")
    keys = Comment.select(Comment.id).where(Comment.track == track_id)
    return ListQuery(keys, rows, [Comment.place, Comment.id])


def create(
    track_id: int, content: str, *, position: int | None = None, parent_id: int | None = None, now: int, actor: Identity
) -> CommentRow:
    """Create a comment, or a reply to `parent_id`. `position`, in percent of the track, defaults to the parent's, or 0.

    Raises Invalid if the parent is missing, deleted or on another track.
    """
    _lock([track_id])
    if parent_id is not None and (problem := find_parent_problem(parent_id, track_id)):
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
    created = Comment.create(track=track_id, user=actor.user_id, parent=parent_id, place=place, **values)
    return CommentRow(created.id, user_id=actor.user_id, display_name=actor.display_name, avatar=actor.avatar, **values)


def find_parent_problem(parent_id: int, track_id: int) -> str | None:
    """Return an error message if comment `parent_id` cannot get a reply on this track, else None."""
    parent: Comment | None = Comment.get_or_none(Comment.id == parent_id)
    if parent is None:
        return f"Comment {parent_id} does not exist."
    if parent.track != track_id:
        return "That comment is on another track."
    return "That comment was deleted." if parent.deleted else None


def count(track_id: int) -> int:
    """Return the number of the track's comments, with deleted ones that have replies."""
    found: int = Comment.select().where(Comment.track == track_id).count()
    return found


def move(source: int, target: int) -> None:
    """Move the comments of the track `source` to the track `target`, each thread to its place among the others."""
    if moved := count(source):
        _spread(_threads(source, target), _gap(moved + count(target)), track=target)


def _threads(track_id: int, other: int) -> Any:
    """Return the query for the threads of two tracks, in the order they would have if written for one track."""
    place = Case(None, [(Comment.parent.is_null(), Comment.place)])
    root = fn.MAX(place).over(partition_by=[Comment.track], order_by=[Comment.place, Comment.id]).alias("root")
    query = Comment.select(Comment.id, Comment.track, Comment.place, root)
    each, first = query.where(Comment.track.in_((track_id, other))).alias("each"), Comment.alias("first")
    order = [first.position, first.created_at, first.id, each.c.place, each.c.id]
    threads = each.select_from(each.c.id, fn.ROW_NUMBER().over(order_by=order).alias("number"))
    same = (first.track == each.c.track_id) & (first.place == each.c.root) & first.parent.is_null()
    # Each comment has one, but of an inner join SQLite reads all comments that are no replies, of all tracks, first.
    return threads.join(first, "LEFT JOIN", on=same)


def _spread(numbered: Any, gap: int, start: int = 0, **values: Any) -> None:
    """Set the sort keys (`place`) of comments to `start` plus multiples of `gap`.

    `numbered`: the query for ids and numbers.
    """
    numbered = numbered.alias("numbered")
    update = Comment.update(place=start + numbered.c.number * gap, **values)
    update.from_(numbered).where(Comment.id == numbered.c.id).execute()


def get_deletable(comment_id: int, *, actor: Identity) -> Comment:
    """Return the comment. Raises NotFound, or Forbidden unless the actor wrote it or manages an artist of its track."""
    comment: Comment = existing(Comment.get_or_none(Comment.id == comment_id), NONE)
    managed = TrackArtist.select().join(Artist).where(TrackArtist.track == comment.track, managed_by(actor.user_id))
    if comment.user != actor.user_id and not managed.exists():
        raise Forbidden("You neither wrote this comment nor manage an artist of its track.")
    return comment


def delete(comment: Comment) -> None:
    """Delete the comment or, if it has replies, only its text. Raises NotFound if it was removed after it was read.

    Comments whose text was deleted earlier are deleted too when their last reply is deleted.
    """
    _lock([comment.track])
    found: Comment = existing(Comment.get_or_none(Comment.id == comment.id), NONE)
    if found.deleted:
        return
    following = _places(found.track).where(Comment.place > found.place).order_by(Comment.place).first()
    depth_after = following.depth if following else 0
    if depth_after > found.depth:
        Comment.update(deleted=True, content="").where(Comment.id == found.id).execute()
        return
    start = _first_removable_place(found, depth_after)
    removed = (Comment.track == found.track) & Comment.place.between(start, found.place)
    if start < found.place:
        # A thread may be deeper than the 1,000 levels of SQLite's cascades.
        Comment.update(parent=None).where(removed, IS_REPLY).execute()
    Comment.delete().where(removed).execute()


def delete_all(user_id: int) -> None:
    """Delete all comments of an account, which is about to be deleted. Those with replies lose text and author."""
    commented = Comment.select(Comment.track).where(Comment.user == user_id).distinct().order_by(Comment.track)
    tracks: list[int] = [track for (track,) in commented.tuples().iterator()]
    for some in batches(tracks):
        _lock(some)
    Comment.update(deleted=True, content="", user=None).where(Comment.user == user_id).execute()
    for some in batches(tracks):  # a statement for each track would take most of the time
        removed = _without_replies(some)
        # A thread may be deeper than the 1,000 levels of SQLite's cascades.
        for query in (_make_roots, _delete):
            for ids in batches(removed):
                query(ids)


@compiled
def _make_roots(ids: Collection[int]) -> Any:
    return Comment.update(parent=None).where(Comment.id.in_(ids), IS_REPLY)


@compiled
def _delete(ids: Collection[int]) -> Any:
    return Comment.delete().where(Comment.id.in_(ids))


def _without_replies(track_ids: Sequence[int]) -> list[int]:
    """Return the ids of deleted comments on the tracks that have no reply with text, directly or indirectly."""
    found, track, depth_after = [], 0, -1  # of the next comment that stays
    places = Comment.select(Comment.id, Comment.track, Comment.depth, Comment.deleted)
    last_first = places.where(Comment.track.in_(track_ids)).order_by(
        Comment.track.desc(), Comment.place.desc(), Comment.id.desc()
    )
    for comment_id, of, depth, deleted in last_first.tuples().iterator():
        if of != track:
            track, depth_after = of, -1
        if deleted and depth_after <= depth:
            found.append(int(comment_id))
        else:
            depth_after = depth
    return found


def _first_removable_place(comment: Comment, depth_after: int) -> int:
    """Return the sort key (`place`) of the first comment to delete. All comments from there to `comment` are deleted.

    The first one is the topmost parent without text and without other replies or, if there is none, `comment` itself.
    `depth_after` is the depth of the comment that follows `comment`, or 0.
    """
    start, depth = comment.place, comment.depth
    if depth > depth_after:
        above = _places(comment.track).where(Comment.place < comment.place).order_by(Comment.place.desc())
        for row in above.limit(depth - depth_after).iterator():
            if row.depth != depth - 1 or not row.deleted:
                break
            start, depth = row.place, row.depth
    return int(start)


def _lock(track_ids: Sequence[int]) -> None:
    """Prevent other transactions from changing the comments of the tracks until this transaction ends."""
    list(lock_rows(Track.select(Track.id).where(Track.id.in_(track_ids)).order_by(Track.id)).tuples().iterator())


def _places(track_id: Any) -> Any:
    return Comment.select(Comment.id, Comment.place, Comment.depth, Comment.deleted).where(Comment.track == track_id)


def _free_place(track_id: int, parent: Comment | None, position: int) -> int:
    """Return an unused sort key (`place`) for a reply to `parent` or, if that is None, for a comment at `position`."""
    end = _end_of_thread(track_id, parent.id, parent.depth) if parent else _next_root(track_id, position)
    before = Comment.select(fn.MAX(Comment.place)).where(Comment.track == track_id)
    start = (before if end is None else before.where(Comment.place < end)).scalar() or 0
    room = (LAST if end is None else end) - start
    if room < 2:  # noqa: PLR2004 - no free place between
        _make_room(track_id, start)
        return _free_place(track_id, parent, position)
    # The square root leaves room on both sides, for many later comments and for replies to each.
    return start + (GAP if end is None and room > GAP else isqrt(room))


def _next_root(track_id: int, position: int) -> int | None:
    """Return the sort key (`place`) of the first comment after `position` that is not a reply, or None."""
    later = Comment.select(Comment.place).where(
        Comment.track == track_id, Comment.parent.is_null(), Comment.position > position
    )
    found: int | None = later.order_by(Comment.position, Comment.place).limit(1).scalar()
    return found


def _end_of_thread(track_id: int, parent_id: int, depth: int) -> int | None:
    """Return the sort key (`place`) of the comment after all replies to a comment with this id and `depth`, or None."""
    place = Comment.select(Comment.place).where(Comment.id == parent_id)
    after = Comment.select(Comment.place).where(
        Comment.track == track_id, Comment.place > place, Comment.depth <= depth
    )
    found: int | None = after.order_by(Comment.place).limit(1).scalar()
    return found


def _make_room(track_id: int, start: int) -> None:
    """Spread the sort keys (`place`) after `start`, of as few comments as suffice: a track may have very many."""
    after, few = (Comment.track == track_id) & (Comment.place > start), FEW
    while True:
        end = Comment.select(Comment.place).where(after).order_by(Comment.place).offset(few).limit(1).scalar()
        number = Comment.select().where(after).count() if end is None else few
        gap = min(GAP, ((LAST if end is None else end) - start) // (number + 2))
        if gap >= max(2, isqrt(GAP)):
            return _spread(_numbered(after if end is None else after & (Comment.place < end)), gap, start)
        if end is None:
            return _spread(_numbered(Comment.track == track_id), _gap(count(track_id)))
        few *= 4


def _numbered(which: Any) -> Any:
    number = fn.ROW_NUMBER().over(order_by=[Comment.place, Comment.id]).alias("number")
    return Comment.select(Comment.id, number).where(which)


def _gap(comments: int) -> int:
    """Return the gap between the sort keys (`place`) of this many comments that are spread evenly."""
    return min(GAP, LAST // (comments + 2))
