"""Find the tracks that listens name, as `import plays` does, in the whole catalog."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from musicsvc.store import models
from musicsvc.store.catalog import external_ids, merged
from musicsvc.store.catalog.identifiers import as_isrc
from musicsvc.store.engine.name_index import ARTISTS
from musicsvc.store.engine.name_keys import caseless_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.rows import MOST_ARTISTS, NAMES
from musicsvc.store.importing.plays.listen_rows import Named
from musicsvc.store.importing.plays.matching import AMBIGUOUS, Artist, CatalogIndex, TrackLookup, digest
from musicsvc.store.models import Merged, MergedCredit, TrackArtist
from musicsvc.wording import LONGEST_NAME


class Listen(NamedTuple):
    """A listen as a player reports it, with the names and codes of its track."""

    played_at: int
    artist: str
    title: str
    release: str | None = None
    isrc: str | None = None
    external_id: str | None = None
    platform: str | None = None

    @property
    def artists(self) -> tuple[str, ...]:
        """The artists that the text names, the first of them if it has more than rows of imports may have."""
        with suppress(ValueError):
            if found := NAMES([self.artist]):
                return tuple(found[:MOST_ARTISTS])
        return (self.artist,)


def heard(
    played_at: int,
    artist: str,
    title: str,
    *,
    release: str | None,
    isrc: str | None,
    mbid: str | None,
    player: str | None,
) -> Listen:
    """Return a listen with codes and the player's name in the forms that are stored. Wrong codes are left out."""
    code = isrc and as_isrc(isrc.replace("-", "").replace(" ", ""))
    known = mbid and len(mbid) <= LONGEST_NAME and external_ids.bare(mbid, "track")
    kept = "abcdefghijklmnopqrstuvwxyz0123456789"
    platform = player and "".join(sign if sign in kept else "-" for sign in player.lower()[:32])
    return Listen(played_at, artist, title, release, code or None, known or None, platform or None)


def keys(listen: Listen) -> tuple[int, int]:
    """Return hashes of the keys of artists and title, equal for one track, and of that of the first artist."""
    artists = listen.artists
    return digest((*map(caseless_key, artists), caseless_key(listen.title))), artist_key(artists[0])


def artist_key(name: str) -> int:
    """Return a hash of the key of an artist's name."""
    return digest((caseless_key(name),))


def find(listens: Sequence[Listen]) -> list[int | None]:
    """Return the track of each listen, by ISRC, external id or names, or None. Call in a transaction."""
    named = merged.spread([_named(each) for each in listens], 0, Named.called)
    catalog = CatalogIndex(None)
    # Without its first artist, no track is found; the others are credited beside it.
    names = {each.artists[0] for each in named if len(each.artists[0]) <= LONGEST_NAME}  # no artist has a longer one
    first = {*map(caseless_key, names)}
    catalog.add(_artists(ARTISTS.equal(names), first))
    others = {caseless_key(name) for each in named for name in each.artists[1:]} - first
    if others and (known := catalog.named(named)):
        catalog.add(_artists({artist for (artist,) in _beside(known)}, others))
    lookup = TrackLookup(named, catalog)
    return [min(lookup.ambiguous_ids(each)) if lookup.find(each) == AMBIGUOUS else lookup.find(each) for each in named]


def _named(listen: Listen) -> Named:
    ids = () if listen.external_id is None else (listen.external_id,)
    return Named(None, ids, listen.isrc, listen.artists, listen.title, listen.release, isrc_first=True)


def _artists(ids: Collection[int], keys: Collection[str]) -> Iterable[Artist]:
    """Yield those of the artists that have a name with one of these keys, and all that had one before a merge.

    Nobody's are preferred.
    """
    found = [*_by_id(ids), *_merged()] if ids else _merged()
    return [Artist(number, name, None) for number, name in found if caseless_key(name) in keys]


@compiled
def _beside(artists: Collection[int]) -> Any:
    """Select the artists of all tracks of these artists, present and former."""
    own, former = TrackArtist.alias(), MergedCredit.alias()
    together = TrackArtist.select(TrackArtist.artist).join(own, on=(own.track == TrackArtist.track))
    before = MergedCredit.select(MergedCredit.artist).join(former, on=(former.merged == MergedCredit.merged))
    return together.where(own.artist.in_(artists)).union(before.where(former.artist.in_(artists)))


@compiled
def _by_id(ids: Collection[int]) -> Any:
    return models.Artist.select(models.Artist.id, models.Artist.name).where(models.Artist.id.in_(ids))


@compiled
def _merged() -> Any:
    """Select the artists into which others were merged, with the names of these."""
    query = Merged.select(models.Artist.id, Merged.name).join(models.Artist, on=models.Artist.id == Merged.into)
    return query.where(Merged.kind == merged.ARTIST, Merged.former > 0)
