"""Who follows whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from musicsvc.errors import Invalid
from musicsvc.store.accounts.user_summary import COLUMNS, UserSummary
from musicsvc.store.engine.pagination import Listing, Page, paginate
from musicsvc.store.models import Follow, User

if TYPE_CHECKING:
    from musicsvc.store.accounts.tokens import Identity


def follow(user_id: int, *, now: int, actor: Identity) -> None:
    """Let the caller follow the account; harmless when repeated. Invalid for the caller's own."""
    if user_id == actor.user_id:
        raise Invalid({}, "You cannot follow yourself.")
    Follow.insert(follower=actor.user_id, followed=user_id, created_at=now).on_conflict_ignore().execute()


def unfollow(user_id: int, *, actor: Identity) -> None:
    """Let the caller follow the account no longer; harmless where the caller does not."""
    Follow.delete().where(Follow.follower == actor.user_id, Follow.followed == user_id).execute()


def followed_by(user_id: int, page: Page) -> Listing[UserSummary]:
    """Whom the account follows, newest follow first."""
    return _people(Follow.followed, Follow.follower == user_id, page)


def followers_of(user_id: int, page: Page) -> Listing[UserSummary]:
    """Who follows the account, newest follow first."""
    return _people(Follow.follower, Follow.followed == user_id, page)


def _people(side: Any, condition: Any, page: Page) -> Listing[UserSummary]:
    """The accounts on this side of the follows that meet the condition."""
    rows = Follow.select(*COLUMNS).join(User, on=(side == User.id))
    return paginate(Follow.select(Follow.id).where(condition), rows, [Follow.id.desc()], page, UserSummary)
