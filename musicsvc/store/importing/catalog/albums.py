"""Find, create and update the albums of a catalog import. Albums are found by external id, or first artist and name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from musicsvc.store.catalog import sizes
from musicsvc.store.catalog.sizes import AlbumSize
from musicsvc.store.engine import bulk, dialect
from musicsvc.store.engine.sql import run_many
from musicsvc.store.importing.catalog.batch import Batch, ItemState, Key
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Album, AlbumArtist

KIND = "albums"
FIELDS = ("name", "release_date", "image", "upc", "label")
MOVE = "UPDATE album_artist SET position = ? WHERE album_id = ? AND artist_id = ?"
COLUMNS = (Album.id, Album.external_id, *(getattr(Album, name) for name in FIELDS))


def resolve(rows: Sequence[CatalogRow], artists: Mapping[str, int], batch: Batch) -> list[int | None]:
    """Create or update the albums that the rows name. Return for each row an album id, or None if it names no album."""
    with_album = [row for row in rows if row.album]
    batch.bounds.load_artists({artists[name] for row in with_album for name in row.album_credits}, artists)
    _load(with_album, artists, batch)
    states = {id(row): _merge(row, artists, batch) for row in with_album}
    if not batch.scope.dry_run:
        _save(list({id(state): state for state in states.values()}.values()), batch)
    batch.bounds.albums |= {state.id: state.size for state in states.values()}
    return [states[id(row)].id if id(row) in states else None for row in rows]


def _key(row: CatalogRow, artists: Mapping[str, int]) -> Key:
    if row.album_external_id:
        return ("id", row.album_external_id)
    return ("name", artists[row.album_credits[0]], row.album)


def _load(rows: Iterable[CatalogRow], artists: Mapping[str, int], batch: Batch) -> None:
    """Load the albums that the rows may name into the batch, including albums that only a dry run has created."""
    keys = {_key(row, artists) for row in rows}
    found = [*_by_external_id([key[1] for key in keys if key[0] == "id"], batch)]
    found += _by_name([key for key in keys if key[0] == "name"])
    credit = _credits([row[0] for row in found])
    measured = batch.measure({row[0] for row in found})
    # For a row without an external id, albums without one come first, then the oldest.
    for album_id, external_id, *fields in sorted(found, key=lambda row: (row[1] is not None, row[0])):
        state = batch.get(KIND, album_id)
        if state is None:
            values = dict(zip(FIELDS, fields, strict=True)) | {"artists": credit.get(album_id, {})}
            state = batch.add(KIND, ItemState(album_id, values, size=measured[album_id]))
        batch.index(KIND, state, external_id, _name_key(state))
    for key in keys:
        batch.load_unwritten(KIND, key)


def _by_external_id(external_ids: Sequence[Any], batch: Batch) -> Iterable[Any]:
    for some in dialect.batches(external_ids):
        mine = Album.imported_for == batch.scope.imported_for
        yield from Album.select(*COLUMNS).where(mine, Album.external_id.in_(some)).tuples().iterator()


def _by_name(keys: Sequence[Key]) -> Iterable[Any]:
    first = (AlbumArtist.album == Album.id) & (AlbumArtist.position == 0)
    for some in dialect.batches(keys):
        wanted = AlbumArtist.artist.in_({key[1] for key in some}) & Album.name.in_({key[2] for key in some})
        yield from Album.select(*COLUMNS).join(AlbumArtist, on=first).where(wanted).tuples().iterator()


def _credits(album_ids: Sequence[int]) -> dict[int, dict[int, None]]:
    found: dict[int, dict[int, None]] = {}
    for some in dialect.batches(album_ids):
        query = AlbumArtist.select(AlbumArtist.album, AlbumArtist.artist).where(AlbumArtist.album.in_(some))
        for album_id, artist_id in query.order_by(AlbumArtist.position).tuples().iterator():
            found.setdefault(album_id, {})[artist_id] = None
    return found


def _name_key(state: ItemState) -> Key:
    return ("name", next(iter(state.values["artists"]), None), state.values["name"])


def _merge(row: CatalogRow, artists: Mapping[str, int], batch: Batch) -> ItemState:
    state = batch.find(KIND, _key(row, artists))
    if state is None:
        empty: dict[str, Any] = {"artists": {}, "external_id": row.album_external_id}
        state = batch.add(KIND, ItemState(batch.next_dry_run_id(), empty, new=True))
    before = [state.values.get(name) for name in FIELDS]
    credit = [artists[name] for name in row.album_credits]
    fresh = [artist for artist in credit if artist not in state.values["artists"]]
    offered = {"name": row.album, "release_date": row.release_date, "image": row.image}
    altered, differs = state.apply(offered | {"upc": row.upc, "label": row.label})
    altered |= state.add_members("artists", dict.fromkeys(credit))
    altered |= state.put_first([artists[name] for name in row.album_artists])
    if altered:
        batch.bounds.growth[row.line] = _growth(before, state, fresh, batch)
    batch.count(KIND, state, altered=altered)
    if differs:
        batch.differing.add(row.line)
    batch.index(KIND, state, row.album_external_id, _name_key(state))
    return state


def _growth(before: Sequence[str | None], state: ItemState, fresh: Sequence[int], batch: Batch) -> AlbumSize:
    """Return the JSON size that a row adds to its album: new artists (`fresh`) and values that differ from `before`."""
    texts = [
        sizes.measure_text(state.values.get(name)) - sizes.measure_text(old)
        for name, old in zip(FIELDS, before, strict=True)
    ]
    return AlbumSize(0, 0, sum(texts) + batch.bounds.artists(fresh), texts[FIELDS.index("image")])


def _save(states: Sequence[ItemState], batch: Batch) -> None:
    new = [state for state in states if state.new]
    for state, album_id in zip(new, bulk.ids(Album, len(new)), strict=True):
        state.id = album_id
    fields = ("id", "external_id", "imported_for", "created_at", *FIELDS)
    common = (batch.scope.imported_for, batch.scope.now)
    bulk.insert(
        Album,
        fields,
        [(s.id, s.values["external_id"], *common, *(s.values.get(name) for name in FIELDS)) for s in new],
    )
    runs.made(batch.scope.run, Album, [state.id for state in new])
    old = [state for state in states if state.altered and not state.new]
    for state in old:
        if state.changed:
            changes = {name: state.values[name] for name in state.changed}
            Album.update(**changes).where(Album.id == state.id).execute()
        if state.order_before is not None:
            run_many(MOVE, [(at, state.id, artist) for at, artist in enumerate(state.values["artists"])])
    runs.changed(batch.scope.run, Album, {s.id: s.changes(artists=[*s.added["artists"]]) for s in old})
    bulk.insert(AlbumArtist, ("album", "artist", "position"), [link for state in states for link in _links(state)])


def _links(state: ItemState) -> Iterable[tuple[int, int, int]]:
    added = state.added.get("artists", {})
    return ((state.id, artist, at) for at, artist in enumerate(state.values["artists"]) if artist in added)
