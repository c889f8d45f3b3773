"""Delete accounts.

All that belongs to the account alone is deleted. Its plays stay in all figures, for a listener without a name. The
record of security events and the activity log keep the account's id, which no other account gets.
"""

from typing import Any

from musicsvc.errors import Conflict, NotFound
from musicsvc.store.accounts import user_search, users
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.editing import assignments
from musicsvc.store.engagement import comments, engagement_days, likes
from musicsvc.store.engine.sql import erase_for_good, fetch, is_sqlite, run
from musicsvc.store.importing.tasks import queue
from musicsvc.store.models import AccessRequest, ImportTask, Message, Participant, User
from musicsvc.store.plays import counting
from musicsvc.store.plays.rollups import listeners
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor
from musicsvc.wording import quantity

NAMED_ARTISTS = 5
# What goes with an account, by noun, in the order in which it is shown.
COUNTS = {
    "playlist": "playlist WHERE owner_id = ?",
    "collection": "collection WHERE user_id = ?",
    "like": "track_like WHERE user_id = ?",
    "repost": "track_repost WHERE user_id = ?",
    "comment": "comment WHERE user_id = ? AND NOT deleted",
    "message": "message WHERE user_id = ?",
    "followed account": "follow WHERE follower_id = ?",
    "follower": "follow WHERE followed_id = ?",
    "token": "token WHERE user_id = ?",
    "session": "session WHERE user_id = ?",
    "share link": "report_link WHERE user_id = ?",
    "device": "device WHERE user_id = ?",
}
OWNED = "SELECT " + ", ".join(f"(SELECT count(*) FROM {rows})" for rows in COUNTS.values())  # noqa: S608 - constants
MANAGED = "SELECT name FROM artist WHERE manager_id = ? ORDER BY id"
LAST_MESSAGE = """
    UPDATE conversation SET last_at = coalesce(
        (SELECT m.created_at FROM message m WHERE m.conversation_id = conversation.id ORDER BY m.id DESC LIMIT 1),
        created_at
    ) WHERE id IN (SELECT conversation_id FROM participant WHERE user_id = ?)
"""
EMPTY = """
    DELETE FROM conversation WHERE id IN (SELECT conversation_id FROM participant WHERE user_id = ?)
    AND NOT EXISTS (SELECT 1 FROM participant o WHERE o.conversation_id = conversation.id AND o.user_id <> ?)
"""


def count_belongings(user: User) -> dict[str, int]:
    """Return how many playlists, comments and so on the deletion of the account deletes, without zeros."""
    (found,) = fetch(OWNED, *[user.id] * len(COUNTS))
    return {noun: count for noun, count in zip(COUNTS, found, strict=True) if count}


def describe(belongings: dict[str, int]) -> str:
    """Return the belongings of an account in words, such as `2 playlists, 1 token`."""
    return ", ".join(quantity(count, noun) for noun, count in belongings.items())


def check(user: User, *, assigned: bool = False, contact: str | None = None) -> None:
    """Raise Conflict if the account cannot be deleted. `assigned`: another account gets its artists.

    `contact`: the e-mail address that its owner may ask, for the message.
    """
    users.require_other_administrator(user)
    if not assigned:
        _require_no_artists(user, contact)


def delete(
    user_id: int,
    *,
    artists_to: User | None = None,
    contact: str | None = None,
    now: int,
    actor: Actor = "cli",
) -> dict[str, int]:
    """Delete an account. Return what was deleted with it, as `count_belongings` does.

    `artists_to`: the account that manages its artists from then on. Raises NotFound, or Conflict for an account that
    manages artists and for the last administrator. `contact`: as of `check`.
    """
    # No play, like or import of the account comes in between. In the order in which others acquire these locks.
    lock_imports()
    counting.lock()
    engagement_days.lock()
    users.lock_administrators()
    user = _lock(user_id)
    if artists_to is not None:
        assignments.assign_all(user, artists_to, now=now, actor=actor)
    check(user, contact=contact)
    belongings = count_belongings(user)
    comments.delete_all(user.id)
    likes.remove_all(user.id)
    _leave_conversations(user.id)
    AccessRequest.delete().where(AccessRequest.email_key == user.email_key).execute()
    listeners.erase(listeners.account_key(user.id))
    user_search.remove(user.id, user.display_name)
    User.delete().where(User.id == user.id).execute()  # and all rows that refer to it
    erase_for_good()
    reason = describe(belongings) or None
    security_events.add("account.deleted", account_id=user.id, reason=reason, now=now, actor=actor)
    return belongings


def _lock(user_id: int) -> User:
    """Return the account, to which no other transaction can add rows. Raises NotFound."""
    query: Any = User.select().where(User.id == user_id)
    user: User | None = (query if is_sqlite() else query.for_update("FOR UPDATE")).first()
    if user is None:
        raise NotFound(f"There is no account {user_id}.")
    return user


def _require_no_artists(user: User, contact: str | None) -> None:
    names = [name for (name,) in fetch(MANAGED, user.id)]
    if names:
        more = f" and {len(names) - NAMED_ARTISTS:,} more" if len(names) > NAMED_ARTISTS else ""
        ask = f" Ask {contact} for it." if contact else ""
        about = f"{', '.join(names[:NAMED_ARTISTS])}{more}"
        raise Conflict(f"{user.email} manages {about}. These artists need another manager first.{ask}")


def _leave_conversations(user_id: int) -> None:
    """Delete the messages of an account, and the conversations in which nobody else takes part."""
    Message.delete().where(Message.user == user_id).execute()
    run(EMPTY, user_id, user_id)
    run(LAST_MESSAGE, user_id)
    Participant.delete().where(Participant.user == user_id).execute()


def erase_listener(name: str, *, now: int, actor: Actor = "cli") -> int:
    """Erase the name that API clients and imports gave to a listener. Return the listener's id, which plays keep.

    Raises NotFound. Figures stay. Later plays with this name are those of a new listener. Files of plays that accounts
    have uploaded and that are not being imported are removed.
    """
    counting.lock()  # no play of the listener is reported meanwhile
    erased = listeners.erase(listeners.opaque_key(name))
    if erased is None:
        raise NotFound("There is no listener with this name.")
    # Uploaded files of plays, and their refused rows, may have the name. The files go with their rows of the table.
    waits = (ImportTask.kind == "plays") & (ImportTask.step != queue.UNDO) & ImportTask.state.in_(queue.ENDED)
    ImportTask.delete().where(waits).execute()
    erase_for_good()
    security_events.add("listener.erased", reason=f"listener {erased}", now=now, actor=actor)
    return erased
