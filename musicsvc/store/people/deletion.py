"""Delete accounts.

All that belongs to the account alone is deleted. Its plays stay in all figures, for a listener without a name. The
record of security events and the activity log keep the account's id, which no other account gets.
"""

from typing import Any

from peewee import fn

from musicsvc.errors import Conflict, existing
from musicsvc.store.accounts import kept_answers, user_search, users
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.editing import assignments
from musicsvc.store.engagement import comments, engagement_days, likes
from musicsvc.store.engine.sql import erase_for_good, lock_rows
from musicsvc.store.importing.tasks import queue
from musicsvc.store.models import (
    AccessRequest,
    Artist,
    ArtistOffer,
    Collection,
    Comment,
    Conversation,
    Device,
    DivideRule,
    Follow,
    ImportTask,
    KeptAnswer,
    Message,
    Participant,
    PendingListen,
    Playlist,
    RefusedListen,
    ReportLink,
    Session,
    Token,
    TrackLike,
    TrackRepost,
    User,
)
from musicsvc.store.people import catalogs
from musicsvc.store.plays import counting
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

NAMED_ARTISTS = 5
# What goes with an account, by noun, in the order in which it is shown.
BELONGINGS: dict[str, Any] = {
    "playlist": Playlist.owner,
    "collection": Collection.user,
    "like": TrackLike.user,
    "repost": TrackRepost.user,
    "comment": Comment.user,
    "message": Message.user,
    "followed account": Follow.follower,
    "follower": Follow.followed,
    "token": Token.user,
    "session": Session.user,
    "share link": ReportLink.user,
    "device": Device.user,
    "artist offer": ArtistOffer.user,
    "pending listen": PendingListen.user,
}


def count_belongings(user: User) -> dict[str, int]:
    """Return how many playlists, comments and so on the deletion of the account deletes, without zeros."""
    counts: dict[str, int] = {}
    for noun, owner in BELONGINGS.items():
        owned = owner.model.select().where(owner == user.id)
        shown = {Comment.user: ~Comment.deleted, PendingListen.user: PendingListen.counted_for.is_null()}.get(owner)
        counts[noun] = (owned if shown is None else owned.where(shown)).count()
    return {noun: count for noun, count in counts.items() if count}


def describe(belongings: dict[str, int]) -> str:
    """Return the belongings of an account in words, such as `2 playlists, 1 token`."""
    return ", ".join(quantity(count, noun) for noun, count in belongings.items())


def check(user: User, *, without_artists: bool) -> None:
    """Raise Conflict if the account cannot be deleted. `without_artists`: others get its artists, or they go, too."""
    users.require_other_administrator(user)
    if not without_artists:
        _require_no_artists(user)


def delete(
    user_id: int,
    *,
    artists_to: User | None = None,
    with_artists: bool = False,
    tracks: int = 0,
    now: int,
    actor: Actor = "cli",
) -> dict[str, int]:
    """Delete an account. Return what was deleted with it, as `count_belongings` does.

    `artists_to`: the account that manages its artists from then on. `with_artists`: delete them, and their albums and
    tracks, of which the caller has deleted `tracks`. Raises NotFound, or Conflict for an account that manages artists
    and for the last administrator.
    """
    # No play, like or import of the account comes in between. In the order in which others acquire these locks.
    lock_imports()
    counting.lock()
    engagement_days.lock()
    users.lock_administrators()
    user = _lock(user_id)
    if artists_to is not None:
        assignments.assign_all(user, artists_to, now=now, actor=actor)
    check(user, without_artists=with_artists)
    belongings = (catalogs.count(user.id, tracks).goes if with_artists else {}) | count_belongings(user)
    if with_artists:
        catalogs.delete(user.id)
    _remove(user)
    erase_for_good()
    reason = describe(belongings) or None
    security_events.add("account.deleted", account_id=user.id, reason=reason, now=now, actor=actor)
    return belongings


def _lock(user_id: int) -> User:
    """Return the account, to which no other transaction can add rows. Raises NotFound."""
    query: Any = User.select().where(User.id == user_id)
    user: User = existing(lock_rows(query, deleting=True).first(), users.NO_ACCOUNT.format(user_id))
    return user


def _remove(user: User) -> None:
    """Delete the account, which manages no artists any more, with all that is its own."""
    comments.delete_all(user.id)
    likes.remove_all(user.id)
    _leave_conversations(user.id)
    AccessRequest.delete().where(AccessRequest.email_key == user.email_key).execute()
    listeners.erase(listeners.account_key(user.id))
    user_search.remove(user.id, user.display_name)
    ArtistOffer.delete().where(ArtistOffer.user == user.id).execute()
    ArtistOffer.update(recipient=None).where(ArtistOffer.recipient == user.id).execute()
    for table in (DivideRule, KeptAnswer, PendingListen, RefusedListen):
        table.delete().where(table.user == user.id).execute()
    User.delete().where(User.id == user.id).execute()  # and all rows that refer to it


def _require_no_artists(user: User) -> None:
    managed = Artist.select(Artist.name).where(managed_by(user.id)).order_by(Artist.id)
    names = [name for (name,) in managed.tuples().iterator()]
    if names:
        more = f" and {len(names) - NAMED_ARTISTS:,} more" if len(names) > NAMED_ARTISTS else ""
        about = f"{', '.join(names[:NAMED_ARTISTS])}{more}"
        raise Conflict(f"{user.email} manages {about}. Hand these artists over first, or delete them with the account.")


def _leave_conversations(user_id: int) -> None:
    """Delete the messages of an account, and the conversations in which nobody else takes part."""
    kept_answers.forget(user_id)
    Message.delete().where(Message.user == user_id).execute()
    mine = Conversation.id.in_(Participant.select(Participant.conversation).where(Participant.user == user_id))
    other = Participant.select().where(Participant.conversation == Conversation.id, Participant.user != user_id)
    Conversation.delete().where(mine, ~fn.EXISTS(other)).execute()
    newest = Message.select(Message.created_at).where(Message.conversation == Conversation.id)
    last_at = fn.COALESCE(newest.order_by(Message.id.desc()).limit(1), Conversation.created_at)
    Conversation.update(last_at=last_at).where(mine).execute()
    Participant.delete().where(Participant.user == user_id).execute()


def erase_listener(name: str, *, now: int) -> int:
    """Erase the name that API clients and imports gave to a listener. Return the listener's id, which plays keep.

    Raises NotFound. Figures stay. Later plays with this name are those of a new listener. Files of plays that accounts
    have uploaded and that are not being imported are removed.
    """
    counting.lock()  # no play of the listener is reported meanwhile
    erased = existing(listeners.erase(listeners.opaque_key(name)), "There is no listener with this name.")
    # Uploaded files of plays, and their refused rows, may have the name. The files go with their rows of the table.
    waits = (ImportTask.kind == "plays") & (ImportTask.step != queue.UNDO) & ImportTask.state.in_(queue.ENDED)
    ImportTask.delete().where(waits).execute()
    KeptAnswer.delete().where(KeptAnswer.path.endswith("/plays")).execute()  # with hashes of the reports' bodies
    erase_for_good()
    security_events.add("listener.erased", reason=f"listener {erased}", now=now, actor="cli")
    return erased
