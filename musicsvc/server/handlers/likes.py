"""Like and repost tracks, and list what the caller likes and has reposted."""

from musicsvc.server.responses.large import AnswerBuilder
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import track_lists, tracks
from musicsvc.store.engagement import likes
from musicsvc.store.engagement.likes import LIKE, REPOST


def like(subject: int, caller: Identity, now: int) -> JSON:
    """Like a track. Safe to repeat."""
    likes.add(LIKE, subject, now=now, actor=caller)
    return ok()


def unlike(subject: int, caller: Identity) -> JSON:
    """Remove a like. Safe to repeat."""
    likes.remove(LIKE, subject, actor=caller)
    return ok()


def repost(subject: int, caller: Identity, now: int) -> JSON:
    """Repost a track. Safe to repeat."""
    likes.add(REPOST, subject, now=now, actor=caller)
    return ok()


def unrepost(subject: int, caller: Identity) -> JSON:
    """Remove a repost. Safe to repeat."""
    likes.remove(REPOST, subject, actor=caller)
    return ok()


def list_likes(query: Pages, caller: Identity, answer: AnswerBuilder) -> JSON:
    """List the tracks that the caller likes, the last liked first."""
    return answer.paged(track_lists.liked_by(caller.user_id, query.to_page()), catalog.track_full, tracks.complete)


def list_reposts(query: Pages, caller: Identity, answer: AnswerBuilder) -> JSON:
    """List the tracks that the caller has reposted, the last reposted first."""
    return answer.paged(track_lists.reposted_by(caller.user_id, query.to_page()), catalog.track_full, tracks.complete)
