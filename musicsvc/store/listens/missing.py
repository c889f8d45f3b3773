"""Titles of the artists that an account manages which people hear and the catalog lacks, summed over all accounts."""

from collections.abc import Collection
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine.sql import compiled
from musicsvc.store.listens import matching
from musicsvc.store.models import Artist, PendingListen

MOST = 100
FEWEST_ACCOUNTS = 5  # that heard a title, so that nobody's listening can be told from it


class MissingTrack(NamedTuple):
    """A title that matches no track, with the number of listens of all accounts.

    `release`: the one that most listens name of those that at least five accounts do, or None.
    """

    artist: str
    title: str
    release: str | None
    listens: int


def of_manager(user_id: int) -> list[MissingTrack]:
    """Return the titles that at least five accounts heard, the most heard first."""
    managed = Artist.select(Artist.name).where(managed_by(user_id))
    keys = {matching.artist_key(name) for (name,) in managed.tuples().iterator()}
    if not keys:
        return []
    if not (sums := dict(_heard(keys))):
        return []
    listen = PendingListen
    texts: Any = listen.select(listen.id, listen.artist, listen.title, listen.names).where(listen.id.in_([*sums]))
    named: dict[int, Any] = {row[0]: row[1:] for row in texts.tuples().iterator()}
    releases = dict(_releases(keys, {names for *_, names in named.values()}))
    found = ((*named[each], listens) for each, listens in sums.items())
    return [MissingTrack(artist, title, releases.get(names), listens) for artist, title, names, listens in found]


@compiled
def _heard(keys: Collection[int]) -> Any:
    """Select the first listen of each title, and the number of its listens."""
    listen, count = PendingListen, fn.count(SQL("*"))
    first = fn.min(listen.id)
    found = listen.select(first, count).where(listen.artist_key.in_(keys), listen.counted_for.is_null())
    found = found.group_by(listen.names).having(fn.count(listen.user.distinct()) >= FEWEST_ACCOUNTS)
    return found.order_by(count.desc(), first).limit(MOST)


@compiled
def _releases(keys: Collection[int], names: Collection[int]) -> Any:
    """Select titles (their `names`) with the releases that enough accounts name, those of most listens last."""
    listen, waiting = PendingListen, PendingListen.counted_for.is_null()
    found = listen.select(listen.names, listen.release).where(listen.artist_key.in_(keys), listen.names.in_(names))
    found = found.where(waiting, listen.release.is_null(is_null=False)).group_by(listen.names, listen.release)
    found = found.having(fn.count(listen.user.distinct()) >= FEWEST_ACCOUNTS)
    return found.order_by(fn.count(SQL("*")), listen.release.desc())
