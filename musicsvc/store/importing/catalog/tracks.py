"""Find, create and update the tracks of a catalog import, by external id, by ISRC or by artists, name and album."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from musicsvc.store.catalog import genres, identifiers
from musicsvc.store.catalog.merged import TRACK, Former
from musicsvc.store.editing import notices
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.artists import Artists
from musicsvc.store.importing.catalog.index import UNCHANGED, Index, Item, Key, Offered, columns
from musicsvc.store.importing.catalog.rows import MOST_TAGS, OF_TRACK, TOO_MANY_TAGS, CatalogRow
from musicsvc.store.importing.runner import RefusedError, Scope
from musicsvc.store.importing.summary import Counts, LeftOutCell
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Genre, Tag, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.plays import reattribution
from musicsvc.wording import cut, quantity

FIELDS = ("album", "name", *OF_TRACK)  # the columns of a track that a row fills
EMPTY = {**dict.fromkeys(FIELDS), "duration": 0, "artists": ()}
BITS = {name: 1 << place for place, name in enumerate((*FIELDS, "artists"))}
ISRC_TAKEN = "another track has this ISRC"


class Tracks(Index):
    """The tracks that the rows of a batch name."""

    noun, table, owner, fields = "track", Track, TrackArtist.track, FIELDS

    def __init__(self, given: Mapping[int, int], rows: Sequence[CatalogRow], artists: Artists, scope: Scope) -> None:
        unnumbered = [row for row in rows if not row.external_id]
        super().__init__(given, scope, by_name=bool(unnumbered))
        self.left_out: list[LeftOutCell] = []
        self._artists = artists
        self._named: list[str] = []  # the genres of all rows
        by_isrc = _by_isrc({row.isrc for row in rows if row.isrc}, scope)
        external_ids = {row.external_id for row in rows if row.external_id}
        names = name_index.spellings({row.name for row in unnumbered})
        credited = {artist for row in unnumbered for artist in artists.of(row.artists)}
        own, formers = self.find_own(TRACK, external_ids, names, _by_name(credited, names) if names else ())
        others = self.by_id({*by_isrc.values(), *(former.into for former in formers)})
        loaded = self.load([*own, *others])
        credits_of, words, labels = (_collect(each, [*self.items]) for each in (self.credits_of, _genres, _tags))
        for track in loaded:
            more = {"artists": tuple(credits_of[track.id]), "genres": words[track.id], "tags": labels[track.id]}
            track.values |= more
            self.put(track, ("isrc", track.values["isrc"]))
        self._add_merged(formers, by_isrc)
        self._ids = iter(bulk.ids(Track, len(rows)))

    def _add_merged(self, formers: Sequence[Former], by_isrc: Mapping[str, int]) -> None:
        for former in formers:
            track = self.add_former_id(former)
            name = ("name", frozenset(former.artists), name_key(former.name), former.album_id)
            self.add_former(name, track)
            self.add_former((*name, former.code), track)  # for rows with an ISRC
        for code, track_id in by_isrc.items():
            if self.items[track_id].values["isrc"] != code:
                self.add_former(("isrc", code), self.items[track_id])

    def name_key(self, item: Item) -> Key:
        values = item.values
        return ("name", frozenset(values["artists"]), name_key(values["name"]), values["album"])

    def code(self, item: Item) -> str | None:
        isrc: str | None = item.values["isrc"]
        return isrc

    def compare(self, row: CatalogRow, album: int | None) -> Offered:
        """Find the track of the row, or make one that `take` adds. Return what the row says of it.

        Raises RefusedError if another track has the row's ISRC, or another account manages the track with its id.
        """
        self.require_own(row.external_id)
        artists = self._artists.of(row.artists)
        track, former = self._find(row, artists, album)
        other = (self.find(("isrc", row.isrc)) or self.find_former(("isrc", row.isrc))) if row.isrc else None
        if other is not None and other is not track:
            raise RefusedError(ISRC_TAKEN, "tracks", (row.isrc or "",))
        if track is not None and former:
            return Offered(track, UNCHANGED, {}, former=True)
        if track is None:
            track = Item(next(self._ids), {**EMPTY, "genres": {}, "tags": {}}, row.external_id, new=True)
        name = row.name if row.external_id or row.isrc else track.values["name"] or row.name
        home = {} if album is None else {"album": album}
        offer = track.compare({**home, "name": name, **row.of_track, "artists": artists}, BITS)
        return Offered(track, offer, track.lacks("genres", row.genres) if row.genres else {})

    def take(self, row: CatalogRow, offer: Offered) -> None:
        track = offer.item
        track.take(offer.fields)
        if not row.external_id:
            track.given |= BITS["album"]  # the key includes the album, so later rows must not change it
        track.add("genres", offer.fresh)
        fresh = self._fresh_tags(row, track) if row.tags and not offer.former else {}
        track.add("tags", fresh)
        self._named += row.genres
        self.count(track, altered=bool(offer.fields.changes or offer.fresh or fresh))
        if offer.fields.changes:
            self.put(track, ("isrc", track.values["isrc"]))

    def _find(self, row: CatalogRow, artists: Sequence[int], album: int | None) -> tuple[Item | None, bool]:
        """Return the track that the row describes, or None, and whether the row names what was merged into it.

        It is found by external id or, if the row has none, by ISRC or name. A track with the same name but another
        ISRC is a different track.
        """
        name: Key = () if row.external_id else ("name", frozenset(artists), name_key(row.name), album)
        if row.external_id or not row.isrc:
            key = name or ("id", row.external_id)
            found, former = self.find(key, row.name), self.find_former(key)
        else:
            # Even if the other track has taken over the ISRC.
            former = self.find_former((*name, row.isrc)) or self.find_former(("isrc", row.isrc))
            if former is not None:
                return former, True
            named = self.find(name, row.name)
            same = named is not None and named.values["isrc"] in {None, row.isrc}
            found = self.find(("isrc", row.isrc)) or (named if same else None)
            former = self.find_former((*name, None))
        return found or former, found is None and former is not None

    def _fresh_tags(self, row: CatalogRow, track: Item) -> Mapping[str, None]:
        """Return the row's tags that the track lacks. Those beyond MOST_TAGS per track are left out."""
        lacking = track.lacks("tags", dict.fromkeys(row.tags))
        room = max(0, MOST_TAGS - len(track.values["tags"]))
        if len(lacking) <= room:
            return lacking
        fresh = list(lacking)
        self.left_out += [(row.line, "tags", TOO_MANY_TAGS, cut(tag)) for tag in fresh[room:]]
        return dict.fromkeys(fresh[:room])

    def save(self) -> Counts:
        """Write the changes. Return the counts of genres."""
        new, old = self.altered()
        self.insert(new)
        moved = [track.id for track in old if track.before.keys() & {"album", "artists", "duration"}]
        with reattribution.rebuilding(moved):
            self.update(old)
            _link_artists([track for track in old if "artists" in track.before], new)
        _log_uncredited(old, self._scope)
        altered = [*old, *new]
        known = genres.find(list(set(self._named)))
        fresh = dict.fromkeys(name for each in altered for name in each.fresh("genres").values())
        genre_ids = genres.ensure(fresh)
        links = [(each.id, genre_ids[slug]) for each in altered for slug in each.fresh("genres")]
        bulk.insert(TrackGenre, ("track", "genre"), links)
        names = {name for each in altered for name in each.fresh("tags")}
        former = genres.find(list(names), Tag)
        tag_ids = genres.ensure_tags(names)
        links = [(each.id, tag_ids[name]) for each in altered for name in each.fresh("tags")]
        bulk.insert(TrackTag, ("track", "tag"), links)
        new_genres = sorted(genre_ids.keys() - known.keys())
        run = self._scope.run
        runs.made(run, Genre, [genre_ids[slug] for slug in new_genres])
        runs.made(run, Tag, [tag_ids[name] for name in sorted(names - former.keys())])
        runs.changed(run, Track, {each.id: _changes(each, genre_ids, tag_ids) for each in old})
        return Counts(new=len(new_genres), repeated=len(self._named) - len(new_genres))


@compiled
def _by_name(artists: Collection[int], names: Collection[str]) -> Any:
    query = Track.select(*columns(Tracks)).distinct().join(TrackArtist)
    return query.where(TrackArtist.artist.in_(artists), Track.name.in_(names))


@compiled
def _genres(tracks: Collection[int]) -> Any:
    return TrackGenre.select(TrackGenre.track, Genre.name).join(Genre).where(TrackGenre.track.in_(tracks))


@compiled
def _tags(tracks: Collection[int]) -> Any:
    return TrackTag.select(TrackTag.track, Tag.name).join(Tag).where(TrackTag.track.in_(tracks))


def _by_isrc(codes: Collection[str], scope: Scope) -> dict[str, int]:
    """Return the tracks of the manager's artists that have these ISRCs."""
    if codes:
        identifiers.lock()
    return identifiers.tracks_by_isrc(codes, scope.user)


def _collect(select: Callable[[Any], list[Any]], ids: Sequence[int]) -> dict[int, dict[Any, None]]:
    """Return the artist ids, genre names or tag names of each track, as keys of ordered dicts, by track id."""
    found: dict[int, dict[Any, None]] = defaultdict(dict)
    for track_id, each in select(ids) if ids else ():
        found[track_id][each] = None
    return found


def _log_uncredited(tracks: Sequence[Item], scope: Scope) -> None:
    """Log for their managers that artists are no longer credited, on tracks that lose the same artists together."""
    losing: dict[frozenset[int], list[Item]] = defaultdict(list)
    for track in tracks:
        if lost := {*track.before.get("artists", ())} - {*track.values["artists"]}:
            losing[frozenset(lost)].append(track)
    for artists, (first, *others) in losing.items():
        more = f" and {quantity(len(others), 'more track')}" if others else ""
        about = f"track {first.id} ({first.values['name']}){more} (import {scope.run})"
        notices.log_uncredited("track", about, artists, account=scope.user, now=scope.now, actor=scope.actor)


def _link_artists(old: Sequence[Item], new: Sequence[Item]) -> None:
    """Write the artists of new tracks, and those of old ones in place of their former ones."""
    for track in old:
        TrackArtist.delete().where(TrackArtist.track == track.id).execute()
    links = [(track.id, artist, at) for track in (*old, *new) for at, artist in enumerate(track.values["artists"])]
    bulk.insert(TrackArtist, ("track", "artist", "position"), links)


def _changes(track: Item, genre_ids: Mapping[str, int], tag_ids: Mapping[str, int]) -> runs.Changes:
    added = [genre_ids[slug] for slug in track.fresh("genres")]
    return track.changes(genres=added, tags=[tag_ids[name] for name in track.fresh("tags")])
