"""Delete the catalog of an account: its artists, with the albums and tracks that are not of another's artist, too."""

from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.accounts.managing import managed_by, managed_by_others, managed_ids
from musicsvc.store.editing import deletions
from musicsvc.store.engine.sql import batches
from musicsvc.store.insights.belonging import CREDITED
from musicsvc.store.models import AlbumArtist, Artist
from musicsvc.store.plays import counting
from musicsvc.store.plays.rollups import reader
from musicsvc.store.plays.subjects import ACCOUNT, ALBUM, ARTIST, TRACK
from musicsvc.wording import quantity

MOST_TRACKS = 5_000  # that one transaction deletes, for which others wait; the command deletes any number
KINDS = (("album", ALBUM), ("track", TRACK))


class Catalog(NamedTuple):
    """Numbers of what goes with the artists of an account, and of what stays, as it is of another's artist, too."""

    goes: dict[str, int]
    plays: int
    stays: dict[str, int]

    @property
    def large(self) -> bool:
        """Whether a deletion takes so long that others wait for it, so that no page does it."""
        return self.goes.get("track", 0) > MOST_TRACKS

    @property
    def words(self) -> str:
        """Describe what goes."""
        return ", ".join(quantity(count, noun) for noun, count in self.goes.items())

    @property
    def kept(self) -> str:
        """Describe what stays, or return an empty text."""
        return " and ".join(quantity(count, noun) for noun, count in self.stays.items())


def count(user_id: int, deleted: int = 0) -> Catalog:
    """Return what the deletion of the account's artists deletes, without zeros. `deleted`: tracks that went before."""
    goes = {"artist": Artist.select().where(managed_by(user_id)).count()}
    goes |= {noun: _credited(kind, user_id, shared=False).count() for noun, kind in KINDS}
    goes["track"] += deleted
    stays = {noun: _credited(kind, user_id, shared=True).count() for noun, kind in KINDS}
    plays = reader.all_time_plays(ACCOUNT, [user_id]).get(user_id, 0)
    return Catalog(_without_zeros(goes), plays, _without_zeros(stays))


def delete_some(user_id: int, most: int = MOST_TRACKS) -> int:
    """Delete some of the tracks that `delete` deletes, and return their number. Others wait for each call only."""
    counting.lock()
    ids = _ids(TRACK, user_id, shared=False, most=most)
    deletions.remove_tracks(ids)
    return len(ids)


def delete(user_id: int) -> None:
    """Delete the account's artists, and the albums and tracks of nobody else.

    The caller holds the locks that a deletion of an account acquires, and logs it.
    """
    deletions.lock_artists(managed_by(user_id))
    artists, shared = managed_ids(user_id), _ids(ALBUM, user_id, shared=True)
    albums = _ids(ALBUM, user_id, shared=False)
    deletions.remove_tracks(_ids(TRACK, user_id, shared=False))
    deletions.remove(ALBUM, albums)
    deletions.remove(ARTIST, artists)
    _let_others_lead(shared)


def _let_others_lead(albums: list[int]) -> None:
    """Make the next artist the first of the albums that have lost theirs, by which imports find them."""
    other = AlbumArtist.alias()
    first = other.select(fn.MIN(other.position)).where(other.album == AlbumArtist.album)
    for some in batches(albums):
        AlbumArtist.update(position=0).where(AlbumArtist.album.in_(some), AlbumArtist.position == first).execute()


def _credited(kind: int, user_id: int, *, shared: bool) -> Any:
    """Select the albums or tracks of the account's artists that are of another's, too (`shared`), or of no other."""
    credited = CREDITED[kind]
    credit, artist = credited.model.alias(), Artist.alias()
    of_others = credit.select(credit.artist).join(artist, on=(artist.id == credit.artist))
    of_others = of_others.where(getattr(credit, credited.name) == credited, managed_by_others(user_id, artist))
    query = credited.model.select(credited).distinct().join(Artist).where(managed_by(user_id))
    return query.where(fn.EXISTS(of_others) if shared else ~fn.EXISTS(of_others))


def _ids(kind: int, user_id: int, *, shared: bool, most: int | None = None) -> list[int]:
    credited = _credited(kind, user_id, shared=shared).limit(most)
    return [number for (number,) in credited.tuples().iterator()]


def _without_zeros(counts: dict[str, int]) -> dict[str, int]:
    return {noun: number for noun, number in counts.items() if number}
