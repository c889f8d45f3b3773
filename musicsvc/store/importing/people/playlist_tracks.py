"""Find the stored tracks that imported rows name, by external id or by artists and track name."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from musicsvc.store.catalog import merged
from musicsvc.store.catalog.merged import TRACK
from musicsvc.store.engine import name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Album, Artist, Track, TrackArtist

Name = tuple[frozenset[str], str]  # the names of the artists, and of the track
Found = tuple[int, str | None, Name]  # a track: its id, album and name as written


class TrackMention(NamedTuple):
    """A track as an imported row names it. `album` decides between several tracks with the same artists and name."""

    external_id: str | None
    artists: tuple[str, ...] = ()
    track: str | None = None
    album: str | None = None

    @property
    def name(self) -> Name:
        """The names of the artists and of the track, whose keys identify the track if there is no external id."""
        return frozenset(self.artists), self.track or ""

    @property
    def key(self) -> Name:
        return _key(self.name)


def _key(name: Name) -> Name:
    return frozenset(map(name_key, name[0])), name_key(name[1])


def find(mentions: Sequence[TrackMention], *, manager: int) -> list[int | None]:
    """Return a list with the track id of each mention, or None for a mention that no track matches.

    A track or artist also has the names and external ids of what was merged into it.

    Among tracks with the same external id, those imported for the manager are preferred, then those without manager.
    Among tracks with the same artists and name, those written exactly so are preferred, then those on the row's album,
    then those by artists of the manager. Older tracks are preferred to newer ones.
    """
    by_id = _by_external_id({each.external_id for each in mentions if each.external_id}, manager)
    named = [each for each in mentions if not each.external_id]
    formers = merged.artist_names(name_index.spellings({name for each in named for name in each.artists}))
    renamed = {name_key(former): name for former, name in formers.items()}
    parts = merged.spread(named, manager, lambda each, names: each._replace(artists=names))
    now = {
        each: each._replace(artists=tuple(renamed.get(name_key(name), name) for name in by.artists))
        for each, by in zip(named, parts, strict=True)
    }
    by_name = _by_name([*named, *now.values()], manager)
    return [
        by_id.get(each.external_id)
        if each.external_id
        else _best(by_name.get(each.key) or by_name.get(now[each].key) or (), each)
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


def _by_name(mentions: Iterable[TrackMention], manager: int) -> dict[Name, list[Found]]:
    """Return tracks by the keys of their names. The manager's tracks come first."""
    wanted = {each.name for each in mentions}
    titles = name_index.spellings({name for _, name in wanted})
    artists = name_index.spellings({name for names, _ in wanted for name in names})
    rows = {row[0]: row[1:] for row in _tracks(titles, artists)}
    credit: dict[int, tuple[set[str], set[int | None]]] = {each: (set(), set()) for each in rows}
    for track_id, name, managed_by in _credits(list(rows)):
        credit[track_id][0].add(name)
        credit[track_id][1].add(managed_by)
    found: dict[Name, list[Found]] = {}
    for track_id in sorted(rows, key=lambda each: (manager not in credit[each][1], each)):
        title, album = rows[track_id]
        written = frozenset(credit[track_id][0]), title
        found.setdefault(_key(written), []).append((track_id, album, written))
    for former in merged.find(TRACK, name=titles):
        written = frozenset(former.artists.values()), former.name
        found.setdefault(_key(written), []).append((former.into, former.album, written))
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


def _best(found: Sequence[Found], mention: TrackMention) -> int | None:
    """Return the id of the first track that is written and on the album as in the mention; None if `found` is empty."""
    album = name_key(mention.album or "")
    ranks = [(written != mention.name, name_key(on or "") != album, at) for at, (_, on, written) in enumerate(found)]
    return found[min(ranks)[-1]][0] if found else None
