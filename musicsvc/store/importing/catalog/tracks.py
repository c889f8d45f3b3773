"""Find, create and update the tracks of a catalog import, by external id or by artists, name and album."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from peewee import Field

from musicsvc.store.catalog import genres, identifiers, tags
from musicsvc.store.engine import bulk, dialect
from musicsvc.store.importing.catalog.batch import Batch, ItemState, Key
from musicsvc.store.importing.catalog.bounds import BoundsExceededError, Placement
from musicsvc.store.importing.catalog.rows import MOST_TAGS, CatalogRow
from musicsvc.store.importing.summary import Refusal
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Genre, Tag, Track, TrackArtist, TrackGenre, TrackTag
from musicsvc.store.plays import reattribution

KIND = "tracks"
# The fields of a row that are columns of a track.
FIELDS = tuple(
    each.name
    for each in fields(CatalogRow)
    if each.name != "external_id" and isinstance(getattr(Track, each.name, None), Field)
)
ISRC_TAKEN = "another track has this isrc"
ALBUM_GIVEN = 1 << FIELDS.index("album")
COLUMNS = (Track.id, Track.external_id, *(getattr(Track, name) for name in FIELDS))


def resolve(rows: Sequence[CatalogRow], artists: Mapping[str, int], albums: Sequence[int | None], batch: Batch) -> None:
    """Create or update the tracks of the rows. `artists`: artist ids by name. `albums`: an album id (or None) per row.

    Raises BoundsExceededError if an album would exceed its limits.
    """
    keys = [_key(row, artists, album) for row, album in zip(rows, albums, strict=True)]
    _load(keys, {row.isrc for row in rows if row.isrc}, batch)
    _measure(rows, artists, batch)
    states: dict[int, ItemState] = {}
    for row, key, album in zip(rows, keys, albums, strict=True):
        found = _find(row, key, batch)
        before = None if found is None else dict(found.values)
        if (other := _find_isrc(row.isrc, batch)) is not None and other is not found:
            batch.bounds.refused[row.line] = Refusal(row.line, ISRC_TAKEN, (row.isrc or "",))
            continue
        state = _merge(row, found, artists, album, batch)
        if state.values != before or row.line in batch.bounds.growth or batch.bounds.strict:
            old = Placement() if before is None else batch.bounds.measure_track(before)
            batch.bounds.apply(row, album, old, batch.bounds.measure_track(state.values))
        states[id(state)] = state
    if batch.bounds.refused:
        raise BoundsExceededError(batch.bounds.refused)
    _count_genres(rows, batch)
    if not batch.scope.dry_run:
        _save(list(states.values()), batch)


def _key(row: CatalogRow, artists: Mapping[str, int], album: int | None) -> Key:
    if row.external_id:
        return ("id", row.external_id)
    return ("name", frozenset(artists[name] for name in row.artists), row.name, album)


def _find(row: CatalogRow, key: Key, batch: Batch) -> ItemState | None:
    """Return the track that the row describes, or None: found by external id or, if the row has none, by ISRC or name.

    A track with the same name but another ISRC is a different track.
    """
    if row.external_id or not row.isrc:
        return batch.find(KIND, key)
    named = batch.find(KIND, key)
    same = named is not None and named.values["isrc"] in {None, row.isrc}
    return _find_isrc(row.isrc, batch) or (named if same else None)


def _find_isrc(code: str | None, batch: Batch) -> ItemState | None:
    found = batch.find(KIND, ("isrc", code))
    return found if found is not None and found.values["isrc"] == code else None


def _load(keys: Sequence[Key], codes: Collection[str], batch: Batch) -> None:
    """Load the tracks with these keys or ISRCs into the batch, including tracks that only a dry run has created."""
    found = [*_by_external_id([key[1] for key in keys if key[0] == "id"], batch)]
    found += _by_name([key for key in keys if key[0] == "name"])
    found += _by_isrc(codes, batch)
    ids = [row[0] for row in found]
    credit, words, labels = _collect(TrackArtist, ids), _collect(TrackGenre, ids), _collect(TrackTag, ids)
    # For a row without an external id, tracks without one come first, then the oldest.
    for track_id, external_id, *found_values in sorted(found, key=lambda row: (row[1] is not None, row[0])):
        state = batch.get(KIND, track_id)
        if state is None:
            values = dict(zip(FIELDS, found_values, strict=True))
            values["artists"] = tuple(credit.get(track_id, ()))
            values |= {"genres": words.get(track_id, {}), "tags": labels.get(track_id, {})}
            state = batch.add(KIND, ItemState(track_id, values))
        _index(state, external_id, batch)
    for key in (*keys, *(("isrc", code) for code in sorted(codes))):
        batch.load_unwritten(KIND, key)


def _measure(rows: Sequence[CatalogRow], artists: Mapping[str, int], batch: Batch) -> None:
    """Load the JSON sizes of the albums of the batch, and of all artists that its rows and tracks name."""
    found = [state.values for state in batch.states[KIND].values()]
    on = {values["album"] for values in found} - {None}
    if on or batch.bounds.albums:
        given = {artists[name] for row in rows for name in row.artists}
        batch.bounds.load_artists(given.union(*(values["artists"] for values in found)), artists)
    batch.bounds.albums |= batch.measure(on - batch.bounds.albums.keys())


def _by_external_id(external_ids: Sequence[Any], batch: Batch) -> Iterable[Any]:
    for some in dialect.batches(external_ids):
        mine = Track.imported_for == batch.scope.imported_for
        yield from Track.select(*COLUMNS).where(mine, Track.external_id.in_(some)).tuples().iterator()


def _by_isrc(codes: Collection[str], batch: Batch) -> Iterable[Any]:
    """Yield the tracks of the manager's artists that have these ISRCs."""
    if codes and not batch.scope.dry_run:
        identifiers.lock()
    ids = list(identifiers.tracks_by_isrc(codes, batch.scope.manager).values())
    for some in dialect.batches(ids):
        yield from Track.select(*COLUMNS).where(Track.id.in_(some)).tuples().iterator()


def _index(state: ItemState, external_id: str | None, batch: Batch) -> None:
    batch.index(KIND, state, external_id, _name_key(state))
    if state.values["isrc"] is not None:
        batch.states[KIND].setdefault(("isrc", state.values["isrc"]), state)


def _by_name(keys: Sequence[Any]) -> Iterable[Any]:
    found: dict[int, Any] = {}
    for some in dialect.batches(keys):
        artists = {artist_id for key in some for artist_id in key[1]}
        wanted = TrackArtist.artist.in_(artists) & Track.name.in_({key[2] for key in some})
        query = Track.select(*COLUMNS).join(TrackArtist).where(wanted)
        found |= {row[0]: row for row in query.tuples().iterator()}
    return found.values()


def _collect(link: Any, track_ids: Sequence[int]) -> dict[int, dict[Any, None]]:
    """Return the artist ids, genre names or tag names of each track, as keys of ordered dicts, by track id.

    `link` is the table to read: TrackArtist, TrackGenre or TrackTag.
    """
    found: dict[int, dict[Any, None]] = {}
    for some in dialect.batches(track_ids):
        if link is TrackArtist:
            query = link.select(link.track, link.artist).order_by(link.track, link.position)
        else:
            word = Genre if link is TrackGenre else Tag
            query = link.select(link.track, word.name).join(word)
        for track_id, each in query.where(link.track.in_(some)).tuples().iterator():
            found.setdefault(track_id, {})[each] = None
    return found


def _name_key(state: ItemState) -> Key:
    return ("name", frozenset(state.values["artists"]), state.values["name"], state.values["album"])


def _merge(
    row: CatalogRow, state: ItemState | None, artists: Mapping[str, int], album: int | None, batch: Batch
) -> ItemState:
    if state is None:
        empty = dict.fromkeys(FIELDS) | {"artists": (), "genres": {}, "tags": {}}
        state = ItemState(batch.next_dry_run_id(), empty | {"external_id": row.external_id}, new=True)
        batch.add(KIND, state)
    offered = {name: getattr(row, name) for name in FIELDS} | {"album": album}
    altered, differs = state.apply(offered | {"artists": tuple(artists[name] for name in row.artists)})
    if not row.external_id:
        state.given |= ALBUM_GIVEN  # the key includes the album, so later rows must not change it
    altered |= state.add_members("genres", row.genres)
    altered |= state.add_members("tags", dict.fromkeys(_new_tags(row, state, batch)))
    batch.count(KIND, state, altered=altered)
    if differs:
        batch.differing.add(row.line)
    _index(state, row.external_id, batch)
    return state


def _new_tags(row: CatalogRow, state: ItemState, batch: Batch) -> list[str]:
    """Return the row's tags that the track lacks. Tags beyond MOST_TAGS per track are only counted in `batch.notes`."""
    fresh = [tag for tag in row.tags if tag not in state.values["tags"]]
    room = max(0, MOST_TAGS - len(state.values["tags"]))
    batch.notes["tags_dropped"] += len(fresh[room:])
    return fresh[:room]


def _count_genres(rows: Sequence[CatalogRow], batch: Batch) -> None:
    named = [slug for row in rows for slug in row.genres]
    known = batch.memory.genres | set(genres.find(list(set(named))))
    batch.new_genres = set(named) - known
    batch.counts["genres"].new += len(batch.new_genres)
    batch.counts["genres"].repeated += len(named) - len(batch.new_genres)


def _save(states: Sequence[ItemState], batch: Batch) -> None:
    new = [state for state in states if state.new]
    for state, track_id in zip(new, bulk.ids(Track, len(new)), strict=True):
        state.id = track_id
    columns = ("id", "external_id", "imported_for", "created_at", *FIELDS)
    bulk.insert(Track, columns, [_columns(state, batch) for state in new])
    with reattribution.rebuilding([s.id for s in states if not s.new and s.changed & {"album", "artists", "duration"}]):
        _update(states)
    genre_ids = genres.ensure(name for s in states for name in s.added["genres"].values())
    bulk.insert(TrackGenre, ("track", "genre"), [(s.id, genre_ids[slug]) for s in states for slug in s.added["genres"]])
    names = {name for s in states for name in s.added["tags"]}
    known = tags.find(list(names))
    tag_ids = tags.ensure(names)
    bulk.insert(TrackTag, ("track", "tag"), [(s.id, tag_ids[name]) for s in states for name in s.added["tags"]])
    run = batch.scope.run
    runs.made(run, Track, [state.id for state in new])
    runs.made(run, Genre, [genre_ids[slug] for slug in sorted(batch.new_genres)])
    runs.made(run, Tag, [tag_ids[name] for name in sorted(names - known.keys())])
    runs.changed(run, Track, {s.id: _changes(s, genre_ids, tag_ids) for s in states if s.altered and not s.new})


def _changes(state: ItemState, genre_ids: Mapping[str, int], tag_ids: Mapping[str, int]) -> runs.Changes:
    genres_ = [genre_ids[slug] for slug in state.added["genres"]]
    return state.changes(genres=genres_, tags=[tag_ids[name] for name in state.added["tags"]])


def _columns(state: ItemState, batch: Batch) -> tuple[Any, ...]:
    values = {**state.values, "duration": state.values["duration"] or 0}
    common = (state.id, values["external_id"], batch.scope.imported_for, batch.scope.now)
    return (*common, *(values[name] for name in FIELDS))


def _update(states: Sequence[ItemState]) -> None:
    """Write the changed columns of existing tracks, and the artists of new tracks and of tracks with other artists."""
    for state in states:
        changes = {name: state.values[name] for name in state.changed if name != "artists"}
        if changes and not state.new:
            Track.update(**changes).where(Track.id == state.id).execute()
        if "artists" in state.changed and not state.new:
            TrackArtist.delete().where(TrackArtist.track == state.id).execute()
    artists = [
        (s.id, artist, at) for s in states if "artists" in s.changed for at, artist in enumerate(s.values["artists"])
    ]
    bulk.insert(TrackArtist, ("track", "artist", "position"), artists)
