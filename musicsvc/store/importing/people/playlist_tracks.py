"""Find the stored tracks that imported rows name, by external id or by artists and track name."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from musicsvc.store.catalog import merged
from musicsvc.store.catalog.merged import TRACK
from musicsvc.store.engine.sql import compiled
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


def _by_external_id(external_ids: Collection[str], manager: int) -> dict[str, int]:
    found: dict[str, tuple[tuple[bool, bool, int], int]] = {}
    formers = merged.find(TRACK, external_id=external_ids)
    former_rows = [(each.external_id, each.imported_for, each.into) for each in formers]
    for external_id, imported_for, track_id in [*_imported(external_ids), *former_rows] if external_ids else ():
        rank = ((imported_for != manager, imported_for != 0, track_id), track_id)
        found[external_id] = min(rank, found.get(external_id, rank))
    return {external_id: track_id for external_id, (_, track_id) in found.items()}


@compiled
def _imported(external_ids: Collection[str]) -> Any:
    query = Track.select(Track.external_id, Track.imported_for, Track.id)
    return query.where(Track.external_id.in_(external_ids))


def _by_name(mentions: Iterable[TrackMention], manager: int) -> dict[Name, list[tuple[int, str | None]]]:
    """Return lists of (track id, album name) by (artist names, track name). The manager's tracks come first."""
    wanted = {each.name for each in mentions}
    titles = {name for _, name in wanted}
    rows = {row[0]: row[1:] for row in _tracks(titles, {name for names, _ in wanted for name in names})}
    credit: dict[int, tuple[set[str], set[int | None]]] = {each: (set(), set()) for each in rows}
    for track_id, name, managed_by in _credits(list(rows)):
        credit[track_id][0].add(name)
        credit[track_id][1].add(managed_by)
    found: dict[Name, list[tuple[int, str | None]]] = {}
    for track_id in sorted(rows, key=lambda each: (manager not in credit[each][1], each)):
        name, album = rows[track_id]
        found.setdefault((frozenset(credit[track_id][0]), name), []).append((track_id, album))
    for former in merged.find(TRACK, name=titles):
        found.setdefault((frozenset(former.artists.values()), former.name), []).append((former.into, former.album))
    return found


@compiled
def _tracks(names: Collection[str], artists: Collection[str]) -> Any:
    """Select id, name and album name of the tracks that have one of these names and an artist with one of these."""
    by = TrackArtist.select(TrackArtist.track).join(Artist).where(Artist.name.in_(artists))
    query = Track.select(Track.id, Track.name, Album.name).join(Album, "LEFT JOIN")
    return query.where(Track.name.in_(names), Track.id.in_(by))


@compiled
def _credits(tracks: Collection[int]) -> Any:
    query = TrackArtist.select(TrackArtist.track, Artist.name, Artist.manager).join(Artist)
    return query.where(TrackArtist.track.in_(tracks))


def _best(found: Sequence[tuple[int, str | None]], album: str | None) -> int | None:
    """Return the id of the first track on this album; without one, of the first track; None if `found` is empty."""
    return next((track_id for track_id, on in found if album and on == album), found[0][0] if found else None)
