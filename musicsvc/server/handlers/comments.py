"""List, write and delete comments on tracks."""

from musicsvc.server.schemas.comments import CommentIn
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes import catalog as shapes
from musicsvc.server.shapes.envelope import JSON, Site, ok, paged
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engagement import comments
from musicsvc.store.models import Comment


def index(subject: int, query: Pages, site: Site) -> JSON:
    """List a track's comments in thread order."""
    return paged(comments.list_by_track(subject, query.to_page()), shapes.comment, site)


def create(subject: int, body: CommentIn, caller: Identity, site: Site, now: int) -> JSON:
    """Comment on a track, or reply to a comment on it."""
    row = comments.create(
        subject, body.content, position=body.position, parent_id=body.parent_id, now=now, actor=caller
    )
    return ok(comment=shapes.comment(row, site))


def delete(subject: Comment) -> JSON:
    """Delete a comment; a comment with replies stays in the list without its text."""
    comments.delete(subject)
    return ok()
