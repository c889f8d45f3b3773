"""Find, create and update the albums of a catalog import.

Albums are found by external id, else by UPC, else by first artist and name.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from peewee import SQL, fn

from musicsvc.store.catalog import album_sizes, identifiers
from musicsvc.store.catalog.merged import ALBUM
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.artists import Artists
from musicsvc.store.importing.catalog.index import UNCHANGED, Index, Item, Key, Offered, Size, columns
from musicsvc.store.importing.catalog.rows import OF_ALBUM, OF_BOTH, CatalogRow
from musicsvc.store.importing.runner import Scope
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Album, AlbumArtist, Track

FIELDS = ("name", *OF_BOTH, *OF_ALBUM)
EMPTY = dict.fromkeys(FIELDS)
EMPTY_SIZE = Size(bytes=album_sizes.EMPTY_ALBUM)
BITS = {name: 1 << place for place, name in enumerate(FIELDS)}
LED = 1 << 29  # a bit of Item.given: a row has named the artists that come first on the album


class Albums(Index):
    """The albums that the rows of a batch name."""

    noun, table, owner, fields = "album", Album, AlbumArtist.album, FIELDS

    def __init__(self, given: Mapping[int, int], rows: Sequence[CatalogRow], artists: Artists, scope: Scope) -> None:
        self._artists = artists
        rows = [row for row in rows if row.album]
        external_ids = {row.album_external_id for row in rows if row.album_external_id}
        named = [self._key(row) for row in rows if not row.album_external_id]
        super().__init__(given, scope, by_name=bool(named))
        names = name_index.spellings([key[2] for key in named])
        of_name = _by_name({key[1] for key in named}, names) if named else ()
        own, formers = self.find_own(ALBUM, external_ids, names, of_name)
        self._load(own)
        self.load_others(former.into for former in formers)
        for former in formers:
            album = self.add_former_id(former)
            for artist in former.artists:
                self.add_former(("name", artist, name_key(former.name)), album)
        self._upcs = {row.upc for row in rows if row.upc}
        by_upc = identifiers.albums_by_upc(self._upcs, scope.user)
        self._own.update(by_upc.values())
        self.load_others(by_upc.values())
        for code, album in ((code, self.items[album_id]) for code, album_id in by_upc.items()):
            self.put(album, ("upc", self.code(album)))
            if self.code(album) != code:
                self.add_former(("upc", code), album)
        self._ids = iter(bulk.ids(Album, len(rows)))

    def load_others(self, ids: Iterable[int | None]) -> None:
        """Add the albums with these ids, which the tracks of the batch are on."""
        self._load(self.by_id([each for each in {*ids} if each is not None and each not in self.items]))

    def _load(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add albums, given as rows, with their artists and sizes. Each is encoded once, to measure it."""
        loaded = self.load(rows)
        if not loaded:
            return
        ids = [album.id for album in loaded]
        credits_of: dict[int, dict[int, None]] = defaultdict(dict)
        for album_id, artist_id in self.credits_of(ids):
            credits_of[album_id][artist_id] = None
        imageless, sizes = dict(_imageless(ids)), album_sizes.measure(ids)
        for album in loaded:
            album.values["artists"] = credits_of[album.id]
            album.size = Size(sizes[album.id].tracks, imageless.get(album.id, 0), sizes[album.id].bytes)
            if album.id in self._own:
                self.put(album)

    def name_key(self, item: Item) -> Key:
        return ("name", next(iter(item.values["artists"]), None), name_key(item.values["name"]))

    def code(self, item: Item) -> str | None:
        upc: str | None = item.values["upc"]
        return upc and upc.lstrip("0")

    def _key(self, row: CatalogRow) -> Key:
        if row.album_external_id:
            return ("id", row.album_external_id)
        return ("name", self._artists.of(row.album_credits)[0], name_key(row.album or ""))

    def _find(self, row: CatalogRow) -> tuple[Item | None, bool]:
        """Return the album that the row describes, or None, and whether the row names what was merged into it.

        Of several albums with the UPC of the row, it is the one with its name. One UPC of a file is one album.
        """
        key, upc = self._key(row), row.upc
        found, former = self.find(key, row.album), self.find_former(key)
        if upc is not None and (found is None or self.code(found) != upc):
            coded = self.find(("upc", upc)) if former is None or found is not None else None
            if found is not None and key[0] == "name" and self._is_named(found):
                found = former = None
            found = coded or found
            former = former or self.find_former(("upc", upc))
        return found or former, found is None and former is not None

    def _is_named(self, album: Item) -> bool:
        """Return True if rows name the album by its UPC, so that a row with another one is of another album."""
        return bool(album.given & BITS["upc"]) or self.code(album) in self._upcs

    def compare(self, row: CatalogRow) -> Offered:
        """Find the album of the row, or make one that `take` adds. Return what the row says of it.

        Raises RefusedError if another account manages the album with its id.
        """
        self.require_own(row.album_external_id)
        album, former = self._find(row)
        if album is not None and former:
            return Offered(album, UNCHANGED, {}, former=True)
        if album is None:
            album = Item(next(self._ids), {**EMPTY, "artists": {}}, row.album_external_id, new=True, size=EMPTY_SIZE)
        name, values = album.values["name"], row.of_album
        if row.album_external_id or name is None or name_key(name) != name_key(row.album or ""):
            name = row.album
        if row.upc is not None and row.upc == self.code(album):
            values = {**values, "upc": album.values["upc"]}  # 12 digits, and 13 with a zero in front, are one UPC
        offer = album.compare({"name": name, **values}, BITS)
        return Offered(album, offer, album.lacks("artists", dict.fromkeys(self._artists.of(row.album_credits))))

    def take(self, row: CatalogRow, offer: Offered) -> None:
        album = offer.item
        album.take(offer.fields)
        album.add("artists", offer.fresh)
        named = bool(row.album_artists) and not offer.former
        moved = named and self._put_first(album, self._artists.of(row.album_artists))
        altered = bool(offer.fields.changes or offer.fresh or moved)
        self.count(album, altered=altered)
        if altered:
            self.put(album, ("upc", self.code(album)))

    def _put_first(self, album: Item, artists: Sequence[int]) -> bool:
        """Put these artists first, unless an earlier row of the import has. Return True if any moved."""
        if album.given & LED:
            return False
        album.given |= LED
        before = list(album.values["artists"])
        album.values["artists"] = dict.fromkeys([*artists, *before])
        moved = list(album.values["artists"]) != before
        if moved:
            album.order_before = [each for each in before if each not in album.added.get("artists", {})]
        return moved

    def save(self) -> None:
        new, old = self.altered()
        self.insert(new)
        self.update(old)
        for album in old:
            if album.order_before is not None or album.fresh("artists"):  # deleted artists leave gaps
                reorder(album.id, album.values["artists"])
        changed = {album.id: album.changes(artists=[*album.fresh("artists")]) for album in old}
        runs.changed(self._scope.run, Album, changed)
        links = [link for album in (*old, *new) for link in _links(album)]
        bulk.insert(AlbumArtist, ("album", "artist", "position"), links)


def reorder(album: int, artists: Iterable[int]) -> None:
    """Store the order of an album's artists."""
    for at, artist in enumerate(artists):
        AlbumArtist.update(position=at).where(AlbumArtist.album == album, AlbumArtist.artist == artist).execute()


@compiled
def _by_name(artists: Collection[int], names: Collection[str]) -> Any:
    led = AlbumArtist.artist.in_(artists) & (AlbumArtist.position == 0)
    return Album.select(*columns(Albums)).join(AlbumArtist).where(led, Album.name.in_(names))


@compiled
def _imageless(ids: Collection[int]) -> Any:
    query = Track.select(Track.album, fn.count(SQL("*"))).group_by(Track.album)
    return query.where(Track.album.in_(ids), Track.image.is_null())


def _links(album: Item) -> Iterator[tuple[int, int, int]]:
    added = album.fresh("artists")
    return ((album.id, artist, at) for at, artist in enumerate(album.values["artists"]) if artist in added)
