"""`import catalog`: import artists, albums and tracks from a file."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import orjson

from musicsvc.errors import Failure
from musicsvc.store.accounts import divide_rules, users
from musicsvc.store.catalog import album_sizes
from musicsvc.store.catalog.identifiers import UPC_DIGITS
from musicsvc.store.editing import twins
from musicsvc.store.editing.twins import OtherManagers
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import headings
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.catalog.albums import Albums
from musicsvc.store.importing.catalog.artists import Artists
from musicsvc.store.importing.catalog.index import Item, Offered, Size
from musicsvc.store.importing.catalog.rows import CatalogRow
from musicsvc.store.importing.catalog.tracks import Tracks
from musicsvc.store.importing.cells import names
from musicsvc.store.importing.columns import Cells, Columns
from musicsvc.store.importing.dividing import Rules
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.runner import ImportOptions, Kind, Outcome, RefusedError, Scope
from musicsvc.store.importing.summary import SharedUpc
from musicsvc.store.insights.export_rows import MOST_ALBUM_ARTISTS, OF_DELETED
from musicsvc.wording import LONGEST_NAME


class Catalog(Kind[CatalogRow]):
    """The import of a catalog. It remembers which fields of albums and tracks its rows have set, as bit masks."""

    name = "catalog"
    counted = ("artists", "albums", "tracks", "genres")
    refused_as = "tracks"
    fields = rows.FIELDS
    synonyms = headings.CATALOG
    required = rows.REQUIRED

    def __init__(self, options: ImportOptions) -> None:
        """Raise Failure for a name of an artist that no row could have, and as all imports do."""
        super().__init__(options)
        self._names: dict[str, dict[str, int]] = {}  # of albums, with their first lines, by UPC
        self._version: str | None = None  # the unused column of versions, or empty
        self._versions: dict[tuple[object, ...], str] = {}  # by what tracks without ids are found by
        self._artist = names.given("artist", options.artist, LONGEST_NAME)

    def forget(self) -> None:
        self._albums: dict[int, int] = {}
        self._tracks: dict[int, int] = {}

    def parse(self, record: Record, cells: Cells) -> CatalogRow | str:
        if self.columns.of_export and cells.values.get("track") == OF_DELETED and not cells.values.get("artist"):
            return rows.DELETED
        if (cells.values.get("item_type") or "").casefold() in rows.SOLD:
            return rows.NO_SONG
        if self._artist is None and rows.is_total(record, cells):
            return rows.TOTAL
        row = rows.parse(record.line, cells, self._artist)
        self._compare_versions(record, row, cells)
        if (
            self.columns.of_export and 0 < len(row.album_artists) < MOST_ALBUM_ARTISTS
        ):  # all: none of the row is another
            row = row._replace(album_credits=row.album_artists)
        if row.upc is not None:
            self._names.setdefault(row.upc, {}).setdefault(name_key(row.album or ""), row.line)
        return row

    def _compare_versions(self, record: Record, row: CatalogRow, cells: Cells) -> None:
        """Say of a row without ids that it has another version than the earlier row that it repeats."""
        if self._version is None:
            unused = (column for column in record.values if self.columns.field(column) is None)
            self._version = next((each for each in unused if headings.key(each) in headings.VERSIONS), "")
        if self._version and row.external_id is None and row.isrc is None:
            version = str(record.values.get(self._version) or "").strip()
            if self._versions.setdefault((row.artists, row.name, row.album), version) != version:
                cells.leave_out("track", rows.OTHER_VERSION, version or row.name)

    def shared_upcs(self) -> list[SharedUpc]:
        found = {upc: (*lines.values(),) for upc, lines in self._names.items() if len(lines) > 1}
        return [SharedUpc(upc.zfill(UPC_DIGITS), lines) for upc, lines in found.items()]

    def write(self, batch: Sequence[CatalogRow], scope: Scope) -> Outcome:
        artists = Artists(batch, scope.user)
        albums = Albums(self._albums, batch, artists, scope)
        tracks = Tracks(self._tracks, batch, artists, scope)
        albums.load_others(track.values["album"] for track in tracks.items.values())
        outcome, notes = Outcome(), list[str]()
        for place, row in enumerate(batch):
            try:
                named = albums.compare(row) if row.album else None
                offer = tracks.compare(row, None if named is None else named.item.id)
                if self.columns.of_export:
                    named, offer = _without_shown_date(row, named, offer)
                sizes = _require_room(row, named, offer, albums.items, artists)
            except RefusedError as refused:
                refused.notes = tuple(note for note in row.notes if note == rows.IGNORED)
                outcome.refused[place] = refused
                continue
            artists.need(row)
            if named is not None:
                albums.take(row, named)
            tracks.take(row, offer)
            for album, size in sizes.items():
                albums.items[album].size = size
            notes += row.notes
            of_album = () if named is None else named.fields.differs
            if of_album or offer.fields.differs:
                outcome.left_out += rows.differing(row, offer.fields.differs, of_album)
                notes += ["differing"] * any(name in rows.OF_BOTH for name in of_album)
        outcome.notes.update(notes)
        outcome.counts["artists"], outcome.artists = artists.save(scope.run, scope.now)
        albums.save()
        outcome.counts |= {"genres": tracks.save(), "albums": albums.counts, "tracks": tracks.counts}
        outcome.left_out += tracks.left_out
        outcome.remember = lambda: self._remember(albums, tracks)
        return outcome

    def _remember(self, albums: Albums, tracks: Tracks) -> None:
        self._albums.update((each.id, each.given) for each in albums.items.values() if each.given)
        self._tracks.update((each.id, each.given) for each in tracks.items.values() if each.given)


def artists_of_others(open_file: Callable[[], Reader], options: ImportOptions, store: Store) -> OtherManagers:
    """Count the artists of a catalog file that already exist under a manager other than the manager of the import."""
    user = None if options.user is None else int(store.read(partial(users.by_email, options.user)).result().id)
    if not store.read(partial(twins.has_others, user)).result():
        return OtherManagers(0, Counter())
    kept = store.read(partial(divide_rules.of_account, user or 0)).result()
    with open_file() as reader:
        names = [name for name in dict.fromkeys((*_artists(reader, options, kept), options.artist)) if name]
    return store.read(partial(twins.under_others, names, user)).result()


def _artists(reader: Reader, options: ImportOptions, kept: Rules) -> Iterator[str]:
    """Yield the names of artists in the file. Invalid rows are skipped. At a damaged place, the iteration ends."""
    columns = Columns(rows.FIELDS, options.pairs, headings.CATALOG, options.date_format, options.divide)
    with suppress(Failure):
        for record in columns.fit(reader, kept):
            if isinstance(record, Record) and record.fault is None:
                found = columns.read(record.values, options.blanks).values
                for names in (found.get(name) or () for name in ("artist", "featured_artist", "album_artist")):
                    yield from names if len(names) <= rows.MOST_ARTISTS else ()


def _without_shown_date(row: CatalogRow, named: Offered | None, offer: Offered) -> tuple[Offered | None, Offered]:
    """Return the offers without the release date, if an export has this one of the track: its own, or its album's."""
    album = None if named is None or named.item.id != offer.item.values["album"] else named.item
    shown = offer.item.values["release_date"] or (album and album.values["release_date"])
    if offer.item.new or shown is None or shown != row.of_track.get("release_date"):
        return named, offer
    return (
        named and named._replace(fields=named.fields.without("release_date")),
        offer._replace(fields=offer.fields.without("release_date")),
    )


def _require_room(
    row: CatalogRow, named: Offered | None, offer: Offered, albums: Mapping[int, Item], artists: Artists
) -> dict[int, Size]:
    """Return the new sizes of the albums that a row changes, by id. Raises RefusedError if one would be too large.

    `named`: the album of the row, which is not always the one that the track is on. `albums`: the others, by id.
    """
    grown = named is not None and bool(named.fields.changes or named.fresh)
    if not grown and not offer.fields.changes:
        return {}
    mine = None if named is None else named.item.id
    sizes: dict[int, Size] = {}
    images = {}
    if named is not None and grown:
        sizes[named.item.id] = _with_fields(named, artists)
        images[named.item.id] = named.fields.changes.get("image", named.item.values["image"])
    before = offer.item.values
    for sign, values in ((-1, before), (1, {**before, **offer.fields.changes})):
        home = values["album"]
        if home is not None:
            album = named.item if named is not None and home == mine else albums[home]
            image = values["image"] or images.get(home, album.values["image"])
            more = _of_track(values, image, artists)
            size = sizes.get(home, album.size)
            sizes[home] = size.plus(sign, sign * (values["image"] is None), sign * more)
    for album_id, size in sizes.items():
        excess = album_sizes.excess_of(size.tracks, size.bytes)
        album = named.item if named is not None and album_id == mine else albums[album_id]
        # An album that is too large already may stay as it is.
        if excess and (size.tracks > album.size.tracks or size.bytes > album.size.bytes):
            names = (row.album,) if row.album and named is not None and named.item is album else ()
            raise RefusedError(excess[0].lower() + excess[1:].rstrip("."), "albums", names)
    return sizes


def _with_fields(named: Offered, artists: Artists) -> Size:
    """Return the size of the row's album with the fields and artists of the row, without its track."""
    album, changes = named.item, named.fields.changes
    more = _bytes([*changes.values()]) - _bytes([album.values[name] for name in changes]) + artists.size(named.fresh)
    if "image" in changes:
        more += album.size.imageless * (_bytes(changes["image"]) - _bytes(album.values["image"]))
    return album.size.plus(0, 0, more)


def _of_track(values: Mapping[str, Any], image: str | None, artists: Artists) -> int:
    fields = (values["name"], values["release_date"], image, values["duration"] or 0, values["description"])
    return album_sizes.of_track(*fields) + artists.size(values["artists"])


def _bytes(value: object) -> int:
    return len(orjson.dumps(value))
