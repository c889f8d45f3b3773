"""Find, create and update the albums of a catalog import.

Albums are found by external id, else by UPC, else by first artist and name.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.store.catalog import album_sizes, identifiers, merged
from musicsvc.store.catalog.merged import ALBUM, Former
from musicsvc.store.engine import bulk, name_index
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.importing.catalog.artists import Artists
from musicsvc.store.importing.catalog.index import UNCHANGED, Index, Item, Key, Offer, Size
from musicsvc.store.importing.catalog.rows import OF_ALBUM, OF_BOTH, CatalogRow
from musicsvc.store.importing.runner import Scope
from musicsvc.store.importing.undoing import runs
from musicsvc.store.models import Album, AlbumArtist, Artist, Track

OF_ROW = (*OF_BOTH, *OF_ALBUM)
FIELDS = ("name", *OF_ROW)
EMPTY = dict.fromkeys(FIELDS)
EMPTY_SIZE = Size(bytes=album_sizes.EMPTY_ALBUM)
BITS = {name: 1 << place for place, name in enumerate(FIELDS)}
LED = 1 << 29  # a bit of Item.given: a row has named the artists that come first on the album
COLUMNS = [getattr(Album, name) for name in ("id", "external_id", *FIELDS)]


class AlbumOffer(NamedTuple):
    """The values of a row for its album, and the artists that it adds to it."""

    album: Item
    fields: Offer
    fresh: Mapping[int, None]
    former: bool = False  # the row names an album that was merged into this one


class Albums(Index):
    """The albums that the rows of a batch name."""

    def __init__(self, given: Mapping[int, int], rows: Sequence[CatalogRow], artists: Artists, scope: Scope) -> None:
        self._artists = artists
        self._scope = scope
        keys = [self._key(row) for row in rows if row.album]
        external_ids = {key[1] for key in keys if key[0] == "id"}
        named = [key for key in keys if key[0] == "name"]
        super().__init__(given, by_name=bool(named))
        names = name_index.spellings([key[2] for key in named])
        imported = _by_external_id(external_ids, scope.user or 0) if external_ids else []
        of_name = _by_name({key[1] for key in named}, names) if named else ()
        formers = merged.find(ALBUM, name=names, external_id=external_ids)
        own, formers = self.keep_own(imported, of_name, formers, lambda ids: _managed(ids, scope.user or 0))
        self._load(own)
        self._add_merged(formers)
        self._upcs = {row.upc for row in rows if row.upc}
        by_upc = identifiers.albums_by_upc(self._upcs, scope.user)
        self._own.update(by_upc.values())
        self.load_others(by_upc.values())
        for code, album in ((code, self.items[album_id]) for code, album_id in by_upc.items()):
            self.put(album, ("upc", _upc(album)))
            if _upc(album) != code:
                self.add_former(("upc", code), album)
        self._ids = iter(bulk.ids(Album, len(keys)))

    def _add_merged(self, formers: Sequence[Former]) -> None:
        self.load_others(former.into for former in formers)
        for former in formers:
            album = self.items[former.into]
            if former.external_id is not None and former.imported_for == (self._scope.user or 0):
                self.add_former(("id", former.external_id), album)
            for artist in former.artists:
                self.add_former(("name", artist, name_key(former.name)), album)

    def load_others(self, ids: Iterable[int | None]) -> None:
        """Add the albums with these ids, which the tracks of the batch are on."""
        others = [each for each in {*ids} if each is not None and each not in self.items]
        self._load(_by_id(others) if others else [])

    def _load(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add albums, given as rows of COLUMNS, with their artists and sizes. Each is encoded once, to measure it."""
        loaded = self.load(rows, FIELDS)
        if not loaded:
            return
        ids = [album.id for album in loaded]
        credits_of: dict[int, dict[int, None]] = defaultdict(dict)
        for album_id, artist_id in _credits(ids):
            credits_of[album_id][artist_id] = None
        imageless, sizes = dict(_imageless(ids)), album_sizes.measure(ids)
        for album in loaded:
            album.values["artists"] = credits_of[album.id]
            album.size = Size(sizes[album.id].tracks, imageless.get(album.id, 0), sizes[album.id].bytes)
            if album.id in self._own:
                self.put(album)

    def name_key(self, item: Item) -> Key:
        return ("name", next(iter(item.values["artists"]), None), name_key(item.values["name"]))

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
        if upc is not None and (found is None or _upc(found) != upc):
            coded = self.find(("upc", upc)) if former is None or found is not None else None
            if found is not None and key[0] == "name" and self._is_named(found):
                found = former = None
            found = coded if coded is not None and _upc(coded) == upc else found
            former = former or self.find_former(("upc", upc))
        return found or former, found is None and former is not None

    def _is_named(self, album: Item) -> bool:
        """Return True if rows name the album by its UPC, so that a row with another one is of another album."""
        return bool(album.given & BITS["upc"]) or _upc(album) in self._upcs

    def compare(self, row: CatalogRow) -> AlbumOffer:
        """Find the album of the row, or make one that `take` adds. Return what the row says of it.

        Raises RefusedError if another account manages the album with its id.
        """
        self.require_own(row.album_external_id, "album")
        album, former = self._find(row)
        if album is not None and former:
            return AlbumOffer(album, UNCHANGED, {}, former=True)
        if album is None:
            album = Item(next(self._ids), {**EMPTY, "artists": {}}, row.album_external_id, new=True, size=EMPTY_SIZE)
        name, values = album.values["name"], row.of_album
        if row.album_external_id or name is None or name_key(name) != name_key(row.album or ""):
            name = row.album
        if row.upc is not None and row.upc == _upc(album):
            values = {**values, "upc": album.values["upc"]}  # 12 digits, and 13 with a zero in front, are one UPC
        offer = album.compare({"name": name, **values}, BITS)
        return AlbumOffer(album, offer, album.lacks("artists", dict.fromkeys(self._artists.of(row.album_credits))))

    def take(self, row: CatalogRow, offer: AlbumOffer) -> None:
        album = offer.album
        album.take(offer.fields)
        album.add("artists", offer.fresh)
        named = bool(row.album_artists) and not offer.former
        moved = named and self._put_first(album, self._artists.of(row.album_artists))
        altered = bool(offer.fields.changes or offer.fresh or moved)
        self.count(album, altered=altered)
        if altered:
            self.put(album, ("upc", _upc(album)))

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
        scope, altered = self._scope, [album for album in self.items.values() if album.altered]
        new = [album for album in altered if album.new]
        common = (scope.user or 0, scope.now)
        rows = [(album.id, album.external_id, *common, *map(album.values.get, FIELDS)) for album in new]
        bulk.insert(Album, ("id", "external_id", "imported_for", "created_at", *FIELDS), rows)
        runs.made(scope.run, Album, [album.id for album in new])
        old = [album for album in altered if not album.new]
        for album in old:
            if album.before:
                changes = {name: album.values[name] for name in album.before}
                Album.update(**changes).where(Album.id == album.id).execute()
            if album.order_before is not None:
                reorder(album.id, album.values["artists"])
        changed = {album.id: album.changes(artists=[*album.fresh("artists")]) for album in old}
        runs.changed(scope.run, Album, changed)
        bulk.insert(AlbumArtist, ("album", "artist", "position"), [link for album in altered for link in _links(album)])


def reorder(album: int, artists: Iterable[int]) -> None:
    """Store the order of an album's artists."""
    for at, artist in enumerate(artists):
        AlbumArtist.update(position=at).where(AlbumArtist.album == album, AlbumArtist.artist == artist).execute()


@compiled
def _by_id(ids: Collection[int]) -> Any:
    return Album.select(*COLUMNS).where(Album.id.in_(ids))


@compiled
def _by_external_id(external_ids: Collection[str], manager: int) -> Any:
    return Album.select(*COLUMNS).where(Album.external_id.in_(external_ids), Album.imported_for == manager)


@compiled
def _managed(ids: Collection[int], manager: int) -> Any:
    query = AlbumArtist.select(AlbumArtist.album).join(Artist)
    return query.where(AlbumArtist.album.in_(ids), fn.coalesce(Artist.manager, 0) == manager)


@compiled
def _by_name(artists: Collection[int], names: Collection[str]) -> Any:
    led = AlbumArtist.artist.in_(artists) & (AlbumArtist.position == 0)
    return Album.select(*COLUMNS).join(AlbumArtist).where(led, Album.name.in_(names))


@compiled
def _credits(ids: Collection[int]) -> Any:
    query = AlbumArtist.select(AlbumArtist.album, AlbumArtist.artist).where(AlbumArtist.album.in_(ids))
    return query.order_by(AlbumArtist.album, AlbumArtist.position)


@compiled
def _imageless(ids: Collection[int]) -> Any:
    query = Track.select(Track.album, fn.count(SQL("*"))).group_by(Track.album)
    return query.where(Track.album.in_(ids), Track.image.is_null())


def _upc(album: Item) -> str | None:
    code: str | None = album.values["upc"]
    return code and code.lstrip("0")


def _links(album: Item) -> Iterator[tuple[int, int, int]]:
    added = album.fresh("artists")
    return ((album.id, artist, at) for at, artist in enumerate(album.values["artists"]) if artist in added)
