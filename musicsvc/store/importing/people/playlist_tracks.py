"""Find the stored tracks that imported rows name, by external id or by artists and track name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from musicsvc.store.catalog import merged
from musicsvc.store.catalog.merged import TRACK
from musicsvc.store.engine import sql
from musicsvc.store.models import Album, Artist, Track, TrackArtist

Name = tuple[frozenset[str], str]  # the names of the artists, and of the track


class TrackMention(NamedTuple):
    """A track as an imported row names it. `album` decides between several tracks with the same artists and name."""

    external_id: str | None
    artists: tuple[str, ...] = ()
    track: str | None = None
    album: str | None = None

    @property
    def name(self) -> Name:
        """The names of the artists and of the track, which identify the track if there is no external id."""
        return frozenset(self.artists), self.track or ""


def find(mentions: Sequence[TrackMention], *, manager: int) -> list[int | None]:
    """Return a list with the track id of each mention, or None for a mention that no track matches.

    A track or artist also has the names and external ids of what was merged into it.

    Among tracks with the same external id, those imported for the manager are preferred, then those without manager.
    Among tracks with the same artists and name, those on the row's album are preferred, then those by artists of the
    manager. Older tracks are preferred to newer ones.
    """
    by_id = _by_external_id({each.external_id for each in mentions if each.external_id}, manager)
    named = [each for each in mentions if not each.external_id]
    renamed = merged.artist_names({name for each in named for name in each.artists})
    now = {each: each._replace(artists=tuple(renamed.get(name, name) for name in each.artists)) for each in named}
    by_name = _by_name([*named, *now.values()], manager)
    return [
        by_id.get(each.external_id)
        if each.external_id
        else _best(by_name.get(each.name) or by_name.get(now[each].name) or (), each.album)
        for each in mentions
    ]


def _by_external_id(external_ids: Iterable[str], manager: int) -> dict[str, int]:
    found: dict[str, tuple[tuple[bool, bool, int], int]] = {}
    for some in sql.batches(list(external_ids)):
        query = Track.select(Track.external_id, Track.imported_for, Track.id).where(Track.external_id.in_(some))
        formers = [(each.external_id, each.imported_for, each.into) for each in merged.find(TRACK, external_id=some)]
        for external_id, imported_for, track_id in [*query.tuples().iterator(), *formers]:
            rank = ((imported_for != manager, imported_for != 0, track_id), track_id)
            found[external_id] = min(rank, found.get(external_id, rank))
    return {external_id: track_id for external_id, (_, track_id) in found.items()}


def _by_name(mentions: Iterable[TrackMention], manager: int) -> dict[Name, list[tuple[int, str | None]]]:
    """Return lists of (track id, album name) by (artist names, track name). The manager's tracks come first."""
    wanted = {each.name for each in mentions}
    artists = {artist_id for artist_id, _ in _artists({name for names, _ in wanted for name in names})}
    rows: dict[int, tuple[str, str | None]] = {}
    for some in sql.batches(sorted({name for _, name in wanted})):
        rows |= {track_id: (name, album) for track_id, name, album in _tracks(some, artists)}
    credit: dict[int, tuple[set[str], set[int | None]]] = {}
    for track_id, name, managed_by in _credits(list(rows)):
        names, managers = credit.setdefault(track_id, (set(), set()))
        names.add(name)
        managers.add(managed_by)
    found: dict[Name, list[tuple[int, str | None]]] = {}
    for track_id in sorted(rows, key=lambda each: (manager not in credit[each][1], each)):
        found.setdefault((frozenset(credit[track_id][0]), rows[track_id][0]), []).append((track_id, rows[track_id][1]))
    for former in merged.find(TRACK, name={name for _, name in wanted}):
        key = frozenset(former.artists.values()), former.name
        found.setdefault(key, []).append((former.into, former.album))
    return found


def _artists(names: Iterable[str]) -> Iterator[Any]:
    for some in sql.batches(list(names)):
        yield from Artist.select(Artist.id, Artist.name).where(Artist.name.in_(some)).tuples().iterator()


def _tracks(names: Sequence[str], artist_ids: Iterable[int]) -> Iterator[Any]:
    """Yield (id, name, album name) of the tracks that have one of these names and one of these artists."""
    for some in sql.batches(list(artist_ids)):
        query = Track.select(Track.id, Track.name, Album.name).join(Album, "LEFT JOIN")
        by = TrackArtist.select(TrackArtist.track).where(TrackArtist.artist.in_(some))
        yield from query.where(Track.name.in_(names), Track.id.in_(by)).tuples().iterator()


def _credits(track_ids: Sequence[int]) -> Iterator[Any]:
    for some in sql.batches(track_ids):
        query = TrackArtist.select(TrackArtist.track, Artist.name, Artist.manager).join(Artist)
        yield from query.where(TrackArtist.track.in_(some)).tuples().iterator()


def _best(found: Sequence[tuple[int, str | None]], album: str | None) -> int | None:
    """Return the id of the first track on this album; without one, of the first track; None if `found` is empty."""
    return next((track_id for track_id, on in found if album and on == album), found[0][0] if found else None)
