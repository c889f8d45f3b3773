"""Find, create and update the tracks of a catalog import, by external id, by ISRC or by artists, name and album."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from peewee import fn

from musicsvc.store.catalog import genres, identifiers, merged
from musicsvc.store.catalog.merged import TRACK, Former
from musicsvc.store.editing import notices
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.artists import Artists
from musicsvc.store.importing.catalog.index import UNCHANGED, Index, Item, Key, Offer
from musicsvc.store.importing.catalog.rows import MOST_TAGS, OF_TRACK, TOO_MANY_TAGS, CatalogRow
from musicsvc.store.importing.runner import RefusedError, Scope
from musicsvc.store.importing.summary import Counts, LeftOutCell
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Artist, Genre, Tag, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.plays import reattribution
from musicsvc.wording import cut, quantity

FIELDS = ("album", "name", *OF_TRACK)  # the columns of a track that a row fills
VALUES = itemgetter(*FIELDS)
EMPTY = {**dict.fromkeys(FIELDS), "artists": ()}
BITS = {name: 1 << place for place, name in enumerate((*FIELDS, "artists"))}
ISRC_TAKEN = "another track has this ISRC"
COLUMNS = [getattr(Track, name) for name in ("id", "external_id", *FIELDS)]


class TrackOffer(NamedTuple):
    """The values of a row for its track, and the genres that it adds to it."""

    track: Item
    fields: Offer
    genres: Mapping[str, str]
    former: bool = False  # the row names a track that was merged into this one


class Tracks(Index):
    """The tracks that the rows of a batch name."""

    def __init__(self, given: Mapping[int, int], rows: Sequence[CatalogRow], artists: Artists, scope: Scope) -> None:
        unnumbered = [row for row in rows if not row.external_id]
        super().__init__(given, by_name=bool(unnumbered))
        self.left_out: list[LeftOutCell] = []
        self._artists = artists
        self._scope = scope
        self._named: list[str] = []  # the genres of all rows
        by_isrc = _by_isrc({row.isrc for row in rows if row.isrc}, scope)
        external_ids = {row.external_id for row in rows if row.external_id}
        names = name_index.spellings({row.name for row in unnumbered})
        formers = merged.find(TRACK, name=names, external_id=external_ids)
        credited = {artist for row in unnumbered for artist in artists.of(row.artists)}
        imported = _by_external_id(external_ids, scope.user or 0) if external_ids else []
        named = _by_name(credited, names) if names else ()
        own, formers = self.keep_own(imported, named, formers, lambda ids: _managed(ids, scope.user or 0))
        others = {*by_isrc.values(), *(former.into for former in formers)}
        stored = [*own, *(_by_id(others) if others else ())]
        loaded = self.load(stored, FIELDS)
        credits_of, words, labels = (_collect(each, [*self.items]) for each in (_artists, _genres, _tags))
        for track in loaded:
            more = {"artists": tuple(credits_of[track.id]), "genres": words[track.id], "tags": labels[track.id]}
            track.values |= more
            self.put(track, ("isrc", track.values["isrc"]))
        self._add_merged(formers, by_isrc)
        self._ids = iter(bulk.ids(Track, len(rows)))

    def _add_merged(self, formers: Sequence[Former], by_isrc: Mapping[str, int]) -> None:
        for former in formers:
            track = self.items[former.into]
            if former.external_id is not None and former.imported_for == (self._scope.user or 0):
                self.add_former(("id", former.external_id), track)
            name = ("name", frozenset(former.artists), name_key(former.name), former.album_id)
            self.add_former(name, track)
            self.add_former((*name, former.code), track)  # for rows with an ISRC
        for code, track_id in by_isrc.items():
            if self.items[track_id].values["isrc"] != code:
                self.add_former(("isrc", code), self.items[track_id])

    def name_key(self, item: Item) -> Key:
        values = item.values
        return ("name", frozenset(values["artists"]), name_key(values["name"]), values["album"])

    def compare(self, row: CatalogRow, album: int | None) -> TrackOffer:
        """Find the track of the row, or make one that `take` adds. Return what the row says of it.

        Raises RefusedError if another track has the row's ISRC, or another account manages the track with its id.
        """
        self.require_own(row.external_id, "track")
        artists = self._artists.of(row.artists)
        track, former = self._find(row, artists, album)
        other = (self._find_isrc(row.isrc) or self.find_former(("isrc", row.isrc))) if row.isrc else None
        if other is not None and other is not track:
            raise RefusedError(ISRC_TAKEN, "tracks", (row.isrc or "",))
        if track is not None and former:
            return TrackOffer(track, UNCHANGED, {}, former=True)
        if track is None:
            track = Item(next(self._ids), {**EMPTY, "genres": {}, "tags": {}}, row.external_id, new=True)
        name = row.name if row.external_id or row.isrc else track.values["name"] or row.name
        home = {} if album is None else {"album": album}
        offer = track.compare({**home, "name": name, **row.of_track, "artists": artists}, BITS)
        return TrackOffer(track, offer, track.lacks("genres", row.genres) if row.genres else {})

    def take(self, row: CatalogRow, offer: TrackOffer) -> None:
        track = offer.track
        track.take(offer.fields)
        if not row.external_id:
            track.given |= BITS["album"]  # the key includes the album, so later rows must not change it
        track.add("genres", offer.genres)
        fresh = self._fresh_tags(row, track) if row.tags and not offer.former else {}
        track.add("tags", fresh)
        self._named += row.genres
        self.count(track, altered=bool(offer.fields.changes or offer.genres or fresh))
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
            found = self._find_isrc(row.isrc) or (named if same else None)
            former = self.find_former((*name, None))
        return found or former, found is None and former is not None

    def _find_isrc(self, code: str | None) -> Item | None:
        found = None if code is None else self.find(("isrc", code))
        return found if found is not None and found.values["isrc"] == code else None

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
        altered = [track for track in self.items.values() if track.altered]
        new, old = [each for each in altered if each.new], [each for each in altered if not each.new]
        columns = ("id", "external_id", "imported_for", "created_at", *FIELDS)
        bulk.insert(Track, columns, [self._columns(track) for track in new])
        moved = [track.id for track in old if track.before.keys() & {"album", "artists", "duration"}]
        with reattribution.rebuilding(moved):
            _update(old)
            _link_artists(altered)
        _log_uncredited(old, self._scope)
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
        runs.made(run, Track, [track.id for track in new])
        runs.made(run, Genre, [genre_ids[slug] for slug in new_genres])
        runs.made(run, Tag, [tag_ids[name] for name in sorted(names - former.keys())])
        runs.changed(run, Track, {each.id: _changes(each, genre_ids, tag_ids) for each in old})
        return Counts(new=len(new_genres), repeated=len(self._named) - len(new_genres))

    def _columns(self, track: Item) -> tuple[Any, ...]:
        track.values["duration"] = track.values["duration"] or 0
        return (track.id, track.external_id, self._scope.user or 0, self._scope.now, *VALUES(track.values))


@compiled
def _by_external_id(external_ids: Collection[str], manager: int) -> Any:
    return Track.select(*COLUMNS).where(Track.external_id.in_(external_ids), Track.imported_for == manager)


@compiled
def _managed(ids: Collection[int], manager: int) -> Any:
    query = TrackArtist.select(TrackArtist.track).join(Artist)
    return query.where(TrackArtist.track.in_(ids), fn.coalesce(Artist.manager, 0) == manager)


@compiled
def _by_name(artists: Collection[int], names: Collection[str]) -> Any:
    query = Track.select(*COLUMNS).distinct().join(TrackArtist)
    return query.where(TrackArtist.artist.in_(artists), Track.name.in_(names))


@compiled
def _by_id(ids: Collection[int]) -> Any:
    return Track.select(*COLUMNS).where(Track.id.in_(ids))


@compiled
def _artists(tracks: Collection[int]) -> Any:
    query = TrackArtist.select(TrackArtist.track, TrackArtist.artist).where(TrackArtist.track.in_(tracks))
    return query.order_by(TrackArtist.track, TrackArtist.position)


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


def _update(tracks: Sequence[Item]) -> None:
    for track in tracks:
        changes = {name: track.values[name] for name in track.before if name != "artists"}
        if changes:
            Track.update(**changes).where(Track.id == track.id).execute()
        if "artists" in track.before:
            TrackArtist.delete().where(TrackArtist.track == track.id).execute()


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


def _link_artists(tracks: Sequence[Item]) -> None:
    """Write the artists of new tracks and of tracks with other artists."""
    links = [
        (track.id, artist, at)
        for track in tracks
        if track.new or "artists" in track.before
        for at, artist in enumerate(track.values["artists"])
    ]
    bulk.insert(TrackArtist, ("track", "artist", "position"), links)


def _changes(track: Item, genre_ids: Mapping[str, int], tag_ids: Mapping[str, int]) -> runs.Changes:
    added = [genre_ids[slug] for slug in track.fresh("genres")]
    return track.changes(genres=added, tags=[tag_ids[name] for name in track.fresh("tags")])
