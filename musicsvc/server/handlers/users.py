"""Search accounts, follow them, list follows, and what the caller manages."""

from musicsvc.server.schemas.accounts import SearchQuery
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.shapes import catalog
from musicsvc.server.shapes.envelope import JSON, Site, ok, paged
from musicsvc.store.accounts import follows
from musicsvc.store.accounts import user_search as names
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import artists
from musicsvc.store.models import User


def me(caller: Identity, site: Site) -> JSON:
    """Read the caller's public account."""
    return ok(user=catalog.user_summary(caller.user_id, caller.display_name, caller.avatar, site))


def list_artists(query: Pages, caller: Identity) -> JSON:
    """List the artists that the caller manages, newest first."""
    return paged(artists.list_managed(caller.user_id, query.to_page()), catalog.artist_full)


def search(query: SearchQuery, site: Site) -> JSON:
    """Search accounts by their display names, the best match first."""
    return ok(users=[catalog.account(row, site) for row in names.find(query.query, query.limit)])


def list_followed(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the accounts that the caller follows, newest follow first."""
    return paged(follows.followed_by(caller.user_id, query.to_page()), catalog.account, site)


def list_followers(query: Pages, caller: Identity, site: Site) -> JSON:
    """List the accounts that follow the caller, newest follow first."""
    return paged(follows.followers_of(caller.user_id, query.to_page()), catalog.account, site)


def follow(subject: User, caller: Identity, now: int) -> JSON:
    """Follow an account. Safe to repeat."""
    follows.follow(subject.id, now=now, actor=caller)
    return ok()


def unfollow(subject: User, caller: Identity) -> JSON:
    """Unfollow an account. Safe to repeat."""
    follows.unfollow(subject.id, actor=caller)
    return ok()
