"""The kinds of callers, and objects of the owner for them to request."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from musicsvc.clock import DAY, SECOND, Clock
from musicsvc.server.handlers import art
from musicsvc.server.shapes import signed_urls
from musicsvc.store import security
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import (
    AccessRequest,
    Album,
    AlbumArtist,
    Artist,
    Collection,
    Comment,
    Conversation,
    Participant,
    PendingListen,
    Playlist,
    PlaylistInvite,
    Token,
    Track,
    TrackArtist,
    User,
)
from musicsvc.store.playlists import playlists
from musicsvc.store.plays.periods import SLOT

T = TypeVar("T")
PASSWORD = "three romances for violin"
# Its hash, with parameters that make it fast to verify.
PASSWORD_HASH = "$argon2id$v=19$m=8,t=1,p=1$oAZu7DyBww81sEcAKANs/g$RxUxFHGgoYaqMuUje3EfL8xPYLqgiJZhTOvkcvQS9NM"
OWNER = "owner"
READER = "read token"  # requests what is its own with a token of the scope `read`
# These ask for what is the owner's, all others for what is their own.
OTHERS = ("stranger", "collaborator", "invited only", "former collaborator")
REFUSED = ("no token", "bad token", "expired token", "revoked token", "without access", "suspended")
WHO = (*REFUSED, READER, OWNER, *OTHERS)


class World:
    """An account for each kind of caller, and its token."""

    def __init__(self, store: Store, clock: Clock, kinds: Sequence[str] = WHO) -> None:
        """Create the callers of these `kinds`; the owner and a caller without a token always exist."""
        self._store = store
        self.now = clock.now()
        self.domain = self.do(lambda: f"label{User.select().count()}.test")  # a store may hold several worlds
        kinds = list(dict.fromkeys(("no token", OWNER, *kinds)))
        accounts = self.do(lambda: [self._account(who) for who in kinds])
        self.ids = {who: user_id for who, (user_id, _) in zip(kinds, accounts, strict=True)}
        self.tokens = {who: token for who, (_, token) in zip(kinds, accounts, strict=True)}

    def email(self, who: str) -> str:
        """The e-mail of this caller's account."""
        return f"{who.replace(' ', '-')}@{self.domain}"

    def do(self, unit: Callable[[], T]) -> T:
        """Return the result of a write transaction."""
        return self._store.write(unit).result()

    def owner(self, who: str) -> int:
        """The account that owns the objects that this caller requests."""
        return self.ids[OWNER if who in OTHERS else who]

    def own_artist(self, who: str) -> int:
        """Return an artist that the caller manages."""
        return self.do(lambda: int(Artist.create(name="Own", manager=self.ids[who], created_at=self.now).id))

    def _account(self, who: str) -> tuple[int, str | None]:
        email, access = self.email(who), who != "without access"
        user = users.create(email, password_hash=PASSWORD_HASH, api_access=access, now=self.now)
        made = self.now - (tokens.LIFETIME if who == "expired token" else DAY)
        scope: tokens.Scope = "read" if who == READER else "read-write"
        token, value = tokens.create(user, "test", scope=scope, now=made, without_access=True)
        if who == "revoked token":
            tokens.revoke(token.id, "a test", now=self.now)
        if who == "suspended":
            users.suspend(user, now=self.now)
        return user.id, {"no token": None, "bad token": tokens.generate()}.get(who, value)


def nothing(world: World, who: str) -> None:
    """For endpoints without a subject."""


def account(world: World, who: str) -> int:
    """The owner's own account."""
    return world.owner(who)


def token(world: World, who: str) -> int:
    """A token of the owner."""
    value = tokens.generate()
    times = {"created_at": world.now, "expires_at": world.now + DAY}
    return int(Token.create(user=world.owner(who), name="a", digest=tokens.digest(value), last_four="abcd", **times).id)


def access_request(world: World, who: str) -> None:
    """A request for access by the caller."""
    values = {"use_case": "A page", "volume": "9 a day", "organization": "Own", "state": "approved"}
    AccessRequest.create(email=world.email(who), email_key=world.email(who), created_at=world.now, **values)


def artist(world: World, who: str) -> int:
    """An artist that the owner manages."""
    return int(Artist.create(name="Amy Beach", manager=world.owner(who), created_at=world.now).id)


def album(world: World, who: str) -> int:
    """An album of such an artist."""
    made = int(Album.create(name="Sketches", created_at=world.now).id)
    AlbumArtist.create(album=made, artist=artist(world, who), position=0)
    return made


def track(world: World, who: str) -> int:
    """A track of such an artist."""
    made = int(Track.create(name="Fireflies", duration=1_000, created_at=world.now).id)
    TrackArtist.create(track=made, artist=artist(world, who), position=0)
    return made


def pending_listen(world: World, who: str) -> int:
    """A listen of the owner that matches no track."""
    texts = {"names": PendingListen.select().count(), "artist_key": 2, "artist": "Nobody", "title": "Nothing"}
    times = {"slot": 3, "played_at": 3 * SLOT, "received_at": world.now}
    return int(PendingListen.create(user=world.owner(who), **texts, **times).id)


def comment(world: World, who: str) -> int:
    """A comment of the owner on a track that another account manages."""
    values = {"position": 0, "depth": 0, "place": 1, "created_at": world.now}
    return int(Comment.create(track=track(world, "no token"), user=world.owner(who), content="Hm", **values).id)


def comment_on_track(world: World, who: str) -> int:
    """Another account's comment on a track that the owner manages."""
    values = {"position": 0, "depth": 0, "place": 1, "created_at": world.now}
    return int(Comment.create(track=track(world, who), user=somebody(world, who), content="Hm", **values).id)


def somebody(world: World, who: str) -> int:  # noqa: ARG001 - the same for all
    """An account that is not one of the callers."""
    return world.ids["no token"]


def preview(world: World, who: str) -> str:  # noqa: ARG001 - the same for all
    """The name of a cover picture in its URL."""
    until = (world.now + DAY) // SECOND
    return signed_urls.sign(security.key(art.PURPOSE), [1, "Rags", "Scott Joplin", until]) + art.SUFFIX


def conversation(world: World, who: str) -> int:
    """A conversation with the owner as the only participant."""
    made = int(Conversation.create(created_at=world.now, last_at=world.now).id)
    Participant.create(conversation=made, user=world.owner(who))
    return made


def collection(world: World, who: str) -> int:
    """A collection of the owner."""
    return int(Collection.create(user=world.owner(who), name="Piano", created_at=world.now).id)


def playlist(**more: Any) -> Callable[[World, str], int]:
    """Return a function that creates a playlist; it was not collaborative for a time, which ends earlier rights."""

    def make(world: World, who: str) -> int:
        values = {"name": f"Of {who}", "owner": world.owner(who), "created_at": world.now}
        made = int(Playlist.create(**values, collaborative=True, **more).id)
        state = {"collaborator": "accepted", "former collaborator": "accepted", "invited only": "pending"}.get(who)
        if state is not None:
            times = {"created_at": world.now, "expires_at": world.now + DAY}
            PlaylistInvite.create(playlist=made, user=world.ids[who], state=state, **times)
        if who == "former collaborator":
            playlists.replace(made, {"collaborative": False})
            playlists.replace(made, {"collaborative": True})
        return made

    return make


def collaboration(*, public: bool, user: str | None = None) -> Callable[[World, str], dict[str, Any]]:
    """Return a function that creates a playlist with one more collaborator, for a path with both; `user` may be me."""

    def make(world: World, who: str) -> dict[str, Any]:
        made, other = playlist(public=public)(world, who), somebody(world, who)
        times = {"created_at": world.now, "expires_at": world.now + DAY}
        PlaylistInvite.create(playlist=made, user=other, state="accepted", **times)
        return {"id": made, "user": user or other}

    return make
