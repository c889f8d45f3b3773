"""Likes and reposts of tracks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from musicsvc.server.shapes.envelope import JSON, ok
from musicsvc.store import reactions
from musicsvc.store.reactions import LIKE, REPOST

if TYPE_CHECKING:
    from musicsvc.store.tokens import Identity


def like(subject: int, caller: Identity, now: int) -> JSON:
    """Like a track; harmless when repeated."""
    reactions.give(LIKE, subject, now=now, by=caller)
    return ok()


def unlike(subject: int, caller: Identity) -> JSON:
    """Take back a like; harmless when repeated."""
    reactions.take(LIKE, subject, by=caller)
    return ok()


def repost(subject: int, caller: Identity, now: int) -> JSON:
    """Repost a track; harmless when repeated."""
    reactions.give(REPOST, subject, now=now, by=caller)
    return ok()


def unrepost(subject: int, caller: Identity) -> JSON:
    """Take back a repost; harmless when repeated."""
    reactions.take(REPOST, subject, by=caller)
    return ok()
