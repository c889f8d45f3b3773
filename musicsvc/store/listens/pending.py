"""Pending listens: listens that match no track (yet), by artist and title, the most heard first."""

from collections.abc import Collection
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.errors import NotFound
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine import sql
from musicsvc.store.engine.pagination import Listing, Page
from musicsvc.store.listens import resolving
from musicsvc.store.models import PendingListen
from musicsvc.store.plays import counting

NO_ENTRY = "There is no such pending listen."


class Entry(NamedTuple):
    """The pending listens of an account with one artist and title. `id`: of the earliest that was received."""

    id: int
    artist: str
    title: str
    release: str | None
    listens: int
    first_at: int
    last_at: int


def list_own(page: Page, *, actor: Identity) -> Listing[Entry]:
    """Return the entries of the actor."""
    waiting = _waiting(actor.user_id)
    total = waiting.select(fn.count(PendingListen.names.distinct())).scalar() or 0
    numbers = fn.min(PendingListen.id), fn.count(SQL("*")), fn.min(PendingListen.played_at)
    groups = waiting.select(*numbers, fn.max(PendingListen.played_at)).group_by(PendingListen.names)
    groups = groups.order_by(fn.count(SQL("*")).desc(), fn.min(PendingListen.id)).limit(page.size).offset(page.offset)
    found = {row[0]: row[1:] for row in groups.tuples().iterator()}

    def load(ids: Collection[int]) -> list[Entry]:
        listen = PendingListen
        texts = listen.select(listen.id, listen.artist, listen.title, listen.release).where(listen.id.in_(list(ids)))
        by_id = {row[0]: row for row in texts.tuples().iterator()}
        return [Entry(*by_id[each], *found[each]) for each in ids]

    return Listing([*found], total, page, load)


def find_own(entry_id: int, *, actor: Identity) -> int:
    """Return the hash of the names of one of the actor's entries. Raises NotFound if there is no such entry."""
    row = _waiting(actor.user_id).select(PendingListen.names).where(PendingListen.id == entry_id).tuples().first()
    if row is None:
        raise NotFound(NO_ENTRY)
    return int(row[0])


def dismiss(names: int | None, *, actor: Identity) -> None:
    """Delete the listens of one entry of the actor or, with None, of all. They keep their places among own plays."""
    which = [PendingListen.user == actor.user_id, PendingListen.counted_for.is_null()]
    if names is not None:
        which.append(PendingListen.names == names)
    PendingListen.delete().where(*which).execute()


def name(names: int, track: int, *, actor: Identity, now: int) -> None:
    """Count the listens of one entry of the actor as plays of a track, which must exist."""
    sql.lock(resolving.LOCK)
    counting.share()
    ids = _waiting(actor.user_id).select(PendingListen.id).where(PendingListen.names == names)
    resolving.count({each: track for (each,) in ids.tuples().iterator()}, now)


def _waiting(account: int) -> Any:
    return PendingListen.select().where(PendingListen.user == account, PendingListen.counted_for.is_null())
