"""Create, delete and list follows: one account follows another."""

from typing import Any

from musicsvc.errors import Invalid
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.accounts.user_search import SUMMARY, UserSummary
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.models import Follow, User


def follow(user_id: int, *, now: int, actor: Identity) -> None:
    """Make the actor follow an account, unless the actor already does. Raises Invalid for the actor's own account."""
    if user_id == actor.user_id:
        raise Invalid({}, "You cannot follow yourself.")
    Follow.insert(follower=actor.user_id, followed=user_id, created_at=now).on_conflict_ignore().execute()


def unfollow(user_id: int, *, actor: Identity) -> None:
    Follow.delete().where(Follow.follower == actor.user_id, Follow.followed == user_id).execute()


def followed_by(user_id: int, page: Page) -> Listing[UserSummary]:
    """Return the accounts that this account follows, most recently followed first."""
    return paginate(_followed, page, UserSummary, user_id, counted=list_blocks.FOLLOWED)


def followers_of(user_id: int, page: Page) -> Listing[UserSummary]:
    """Return the accounts that follow this account, most recent follower first."""
    return paginate(_followers, page, UserSummary, user_id, counted=list_blocks.FOLLOWERS)


def _followed(user_id: int) -> ListQuery:
    return _accounts(Follow.followed, Follow.follower == user_id)


def _followers(user_id: int) -> ListQuery:
    return _accounts(Follow.follower, Follow.followed == user_id)


def _accounts(side: Any, condition: Any) -> ListQuery:
    rows = Follow.select(*SUMMARY).join(User, on=(side == User.id))
    return ListQuery(Follow.select(Follow.id).where(condition), rows, [Follow.id.desc()])
