"""Like and repost tracks."""

from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store.accounts.tokens import Identity
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
