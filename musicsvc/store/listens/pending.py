"""Pending listens: listens that match no track (yet), by artist and title, the most heard first."""

from collections.abc import Collection
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.errors import Invalid, NotFound, existing
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.catalog import tracks
from musicsvc.store.engine import sql
from musicsvc.store.engine.pagination import Listing, Page
from musicsvc.store.listens import resolving
from musicsvc.store.models import PendingListen, Play
from musicsvc.store.plays import counting

NAMED_AT_ONCE = 1000  # about 50 ms
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


def list_own(page: Page, *, actor: Caller) -> Listing[Entry]:
    """Return the entries of the actor."""
    listen = PendingListen
    mine = waiting(actor.user_id)
    total = mine.select(fn.count(listen.names.distinct())).scalar() or 0
    count, first = fn.count(SQL("*")), fn.min(listen.id)
    groups = mine.select(first.alias("id"), count.alias("size")).group_by(listen.names).alias("entry")
    keys = groups.select_from(groups.c.id).order_by(groups.c.size.desc(), groups.c.id)
    ids = [number for (number,) in keys.limit(page.size).offset(page.offset).tuples().iterator()]

    def load(ids: Collection[int]) -> list[Entry]:
        texts = listen.select(listen.id, listen.artist, listen.title, listen.release).where(listen.id.in_(list(ids)))
        named = {row[0]: row for row in texts.tuples().iterator()}
        names = listen.select(listen.names).where(listen.id.in_(list(ids)))
        of = mine.select(first, count, fn.min(listen.played_at), fn.max(listen.played_at))
        numbers = {row[0]: row[1:] for row in of.where(listen.names.in_(names)).group_by(listen.names).tuples()}
        return [Entry(*named[each], *numbers[each]) for each in ids]

    return Listing(ids, total, page, load)


def find_own(entry_id: int, *, actor: Caller) -> int:
    """Return the hash of the names of one of the actor's entries. Raises NotFound if there is no such entry."""
    row = waiting(actor.user_id).select(PendingListen.names).where(PendingListen.id == entry_id).tuples().first()
    return int(existing(row, NO_ENTRY)[0])


def dismiss(names: int | None, *, actor: Caller) -> None:
    """Dismiss the listens of one entry of the actor or, with None, of all. They keep their half minutes and places.

    Raises NotFound if the listens of the entry have been counted or dismissed since it was found.
    """
    sql.lock(resolving.LOCK)
    which = [PendingListen.user == actor.user_id, PendingListen.counted_for.is_null()]
    if names is not None:
        which.append(PendingListen.names == names)
    texts = dict.fromkeys(("release", "isrc", "external_id")) | dict.fromkeys(("artist", "title"), "")
    dismissed = PendingListen.update(counted_for=0, **texts).where(*which).execute()
    if names is not None and not dismissed:
        raise NotFound(NO_ENTRY)


def name(names: int, track: int, *, actor: Caller, now: int) -> None:
    """Count the listens of one entry of the actor as plays of a track.

    Of many, the job that counts listens (`resolving.advance`) counts the rest, which have the negative id of the track.
    Raises NotFound if the listens have been counted or dismissed since the entry was found, Invalid if the track has
    gone meanwhile.
    """
    sql.lock(resolving.LOCK)
    counting.share()
    listen = PendingListen
    some = waiting(actor.user_id).select(listen.id).where(listen.names == names).limit(NAMED_AT_ONCE)
    named = {each: track for (each,) in some.tuples().iterator()}
    if not named:
        raise NotFound(NO_ENTRY)
    if tracks.missing([track]):
        raise Invalid({"track_id": tracks.UNKNOWN})
    resolving.count(named, now)
    of_entry = listen.user == actor.user_id, listen.names == names, listen.counted_for.is_null()
    listen.update(counted_for=-track).where(*of_entry).execute()


def last_heard(account: int) -> tuple[int, str | None] | None:
    """Return when the account's last listen was received, and from which player, or None if there is none."""
    play, listen = Play, PendingListen
    played = play.select(play.reported_at, play.platform).where(play.reporter == account, play.reporter > SQL("0"))
    played = played.where(play.platform.is_null(is_null=False)).order_by(play.reported_at.desc()).limit(1)
    pending = listen.select(listen.received_at, listen.platform).where(listen.user == account)
    found = [*played.tuples().iterator(), *pending.order_by(listen.received_at.desc()).limit(1).tuples().iterator()]
    return max(found, key=lambda row: row[0], default=None)


def waiting(account: int) -> Any:
    return PendingListen.select().where(PendingListen.user == account, PendingListen.counted_for.is_null())
