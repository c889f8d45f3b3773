"""A filled database for the tests of paged endpoints, in which every list has another length.

Each row is kept as the facts that it was created from, so that expected answers are computed and never read back.
Ids, names, instants and counters disagree about the order wherever they can.

ann   owns everything that is listed below, and collaborates on four playlists of cleo
ben   owns nothing: he collaborates on playlists of ann, and takes part in conversations that others began
cleo  owns what nobody else may see: playlists, collections, a conversation
fans  follow and are followed, comment, like and repost
"""

from dataclasses import dataclass, field
from typing import Any

from musicsvc.clock import DAY
from musicsvc.store.accounts import tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.models import User

Row = dict[str, Any]
STEP = 1_000_001  # microseconds between two creations


@dataclass
class World:
    """The created rows in order of creation; `root` is the address of the server."""

    root: str
    now: int
    tokens: dict[str, str] = field(default_factory=dict)
    callers: dict[str, Identity] = field(default_factory=dict)
    fans: list[Identity] = field(default_factory=list)
    artists: list[Row] = field(default_factory=list)
    albums: list[Row] = field(default_factory=list)
    tracks: list[Row] = field(default_factory=list)
    genres: list[Row] = field(default_factory=list)
    comments: list[Row] = field(default_factory=list)
    playlists: list[Row] = field(default_factory=list)
    collections: list[Row] = field(default_factory=list)
    conversations: list[Row] = field(default_factory=list)
    invitations: list[Row] = field(default_factory=list)
    liked: list[Row] = field(default_factory=list)  # tracks, in the order in which ann liked them
    pending: list[Row] = field(default_factory=list)  # entries of pending listens of ann
    reposted: list[Row] = field(default_factory=list)
    access_tokens: list[Row] = field(default_factory=list)
    follows: list[tuple[int, int]] = field(default_factory=list)  # (follower, followed)

    def tick(self) -> int:
        """Return the time of the next creation."""
        self.now += STEP
        return self.now

    @property
    def star(self) -> Row:
        """The artist with many albums and tracks."""
        return self.artists[5]

    def summary(self, user_id: int) -> Row:
        """The summary of an account."""
        (caller,) = [each for each in (*self.callers.values(), *self.fans) if each.user_id == user_id]
        avatar = caller.avatar or f"{self.root}/avatars/{user_id}"
        return {"id": user_id, "display_name": caller.display_name, "avatar": avatar}


def build(root: str, now: int) -> World:
    """Fill an empty database; in a write transaction."""
    from tests.paging import catalog, social  # noqa: PLC0415 - they fill what is defined here

    world = World(root, now - DAY)
    _add_accounts(world)
    catalog.fill(world)
    social.fill(world)
    return world


def _add_accounts(world: World) -> None:
    for name in ("ann", "ben", "cleo"):
        world.tokens[name], world.callers[name] = add_account(world, name)
    world.fans = [add_account(world, f"fan {97 - number}")[1] for number in range(26)]


def add_account(world: World, name: str) -> tuple[str, Identity]:
    """An account with API access, its token and its identity."""
    email = f"{name.replace(' ', '-')}@paging.test"
    user = users.create(email, display_name=name, api_access=True, now=world.tick())
    if user.id % 3 == 0:
        User.update(avatar=f"https://img.test/people/{user.id}.png").where(User.id == user.id).execute()
    value = tokens.create(user, "test", now=world.now)[1]
    caller = tokens.identify(tokens.digest(value))
    assert caller is not None
    return value, caller
