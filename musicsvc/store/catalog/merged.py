"""Tracks, albums and artists that were merged into others, or split: the names and codes by which these are found."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from peewee import JOIN, Value, fn

from musicsvc.store.engine import name_index
from musicsvc.store.engine.name_index import MERGED
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Album, Artist, Merged, MergedCredit

TRACK, ALBUM, ARTIST = 1, 2, 3  # as in store/plays/subjects.py


class Former(NamedTuple):
    """A row that was merged into another (`into`), as imports find it.

    `album_id` and `album`: of a track. `artists`: as in `add`, their names by id.
    """

    id: int
    into: int
    name: str
    code: str | None
    external_id: str | None
    imported_for: int
    album_id: int | None
    album: str | None
    artists: Mapping[int, str] = {}


class Part(NamedTuple):
    """One of the artists into which another was split, by its name today."""

    id: int
    name: str


class Named(Protocol):
    """A row of a file that names artists."""

    @property
    def artists(self) -> tuple[str, ...]:
        """Their names, as written."""


Row = TypeVar("Row", bound=Named)


def find(kind: int, *, name: Collection[str] = (), external_id: Collection[str] = ()) -> list[Former]:
    """Return what was merged and has one of these names or external ids. The last merged comes first."""
    found: dict[int, Former] = {}
    for column, values in (("name", name), ("external_id", external_id)):
        if values:
            found |= {row[0]: Former(*row) for row in _find(kind, values, column=column)}
    if not found:
        return []
    credited: dict[int, dict[int, str]] = defaultdict(dict)
    for former, artist, called in _artists([*found]):
        credited[former][artist] = called
    return [found[each]._replace(artists=credited[each]) for each in sorted(found, reverse=True)]


def artist_names(names: Collection[str]) -> dict[str, str]:
    """Return the names of the artists into which those with these names were merged, by former name."""
    return dict(_artist_names(names)) if names else {}


@compiled
def _find(kind: int, values: Collection[str], *, column: str) -> Any:
    row = Merged.id, Merged.into, Merged.name, Merged.code, Merged.external_id, Merged.imported_for, Merged.album
    query = Merged.select(*row, Album.name).join(Album, JOIN.LEFT_OUTER, on=(Album.id == Merged.album))
    return query.where(Merged.kind == kind, getattr(Merged, column).in_(values))


@compiled
def _artists(ids: Collection[int]) -> Any:
    query = MergedCredit.select(MergedCredit.merged, Artist.id, Artist.name)
    return query.join(Artist, on=(Artist.id == MergedCredit.artist)).where(MergedCredit.merged.in_(ids))


@compiled
def _artist_names(names: Collection[str]) -> Any:
    query = Merged.select(Merged.name, Artist.name).join(Artist, on=(Artist.id == Merged.into))
    return query.where(Merged.kind == ARTIST, Merged.former > 0, Merged.name.in_(names)).order_by(Merged.id)


def add(kind: int, former: int, into: int, values: dict[str, Any], artists: Collection[int]) -> None:
    """Record that a row was merged into another. Its names and codes, and those that led to it, lead to the other.

    `values`: its name and its codes. `artists`: the artists of a track, or the first artist of an album. With `former`
    equal to `into`, the row is also found as it was before.
    """
    Merged.update(into=into).where(Merged.kind == kind, Merged.into == former).execute()
    number = _insert(kind, former, into, values)
    if artists:
        MergedCredit.insert_many([{"merged": number, "artist": artist} for artist in artists]).execute()
    if kind == ALBUM:
        Merged.update(album=into).where(Merged.kind == TRACK, Merged.album == former).execute()
    if kind == ARTIST:
        credited = MergedCredit.select(MergedCredit.merged, Value(into)).where(MergedCredit.artist == former)
        MergedCredit.insert_from(credited, [MergedCredit.merged, MergedCredit.artist]).on_conflict_ignore().execute()
        MergedCredit.delete().where(MergedCredit.artist == former).execute()


def divide(former: int, name: str, into: Sequence[int]) -> None:
    """Record that an artist was split. Its name, and those that led to it, lead to all of the others, in this order.

    A row for each has the negative id of the artist, so that the artist counts as deleted, not as merged.
    """
    led = Merged.select(Merged.former, Merged.name).where(Merged.kind == ARTIST, Merged.into == former)
    called = {-abs(each): also for each, also in led.tuples().iterator()} | {-former: name}
    for group, also in called.items():
        rows = Merged.select(Merged.id, Merged.into).order_by(Merged.id)
        rows = rows.where(Merged.kind == ARTIST, Merged.former.in_((group, -group)))
        before = dict(rows.tuples().iterator())
        _delete([(number, also) for number in before])
        after = dict.fromkeys(
            part for each in before.values() or [former] for part in (into if each == former else [each])
        )
        for part in after:
            _insert(ARTIST, group, part, {"name": also, "imported_for": 0})
    for place, part in enumerate(into):
        kinds = (TRACK,) if place else (TRACK, ALBUM)  # of an album, only the first artist counts
        credited = MergedCredit.select(MergedCredit.merged, Value(part)).join(Merged)
        credited = credited.where(MergedCredit.artist == former, Merged.kind.in_(kinds))
        MergedCredit.insert_from(credited, [MergedCredit.merged, MergedCredit.artist]).on_conflict_ignore().execute()
    MergedCredit.delete().where(MergedCredit.artist == former).execute()


def forget(kind: int, into: Collection[int]) -> None:
    """Forget what was merged into rows that are deleted."""
    gone = Merged.select(Merged.id, Merged.name).where(Merged.kind == kind, Merged.into.in_(into))
    _delete([*gone.tuples().iterator()])


def _insert(kind: int, former: int, into: int, values: Mapping[str, Any]) -> int:
    number: int = Merged.insert(kind=kind, former=former, into=into, **values).execute()
    name_index.spell(MERGED, [(number, values["name"])])
    return number


def _delete(rows: Collection[tuple[int, str]]) -> None:
    """Delete rows, given by their ids and names."""
    if rows:
        name_index.unspell(MERGED, rows)
        Merged.delete().where(Merged.id.in_([number for number, _ in rows])).execute()


def targets(kind: int, ids: Collection[int]) -> dict[int, int]:
    """Return the id of the row into which each of these was merged, for those that were, by former id."""
    rows = Merged.select(Merged.former, Merged.into).where(Merged.kind == kind, Merged.former.in_(list(ids)))
    return dict(rows.tuples().iterator()) if ids else {}


def parts(names: Collection[str], manager: int, *, of_others: bool = False) -> dict[str, tuple[Part, ...]]:
    """Return the parts of artists that were split and had one of these spellings (`name_index`), by name key.

    Those count that have a part of the account `manager` (0 for nobody) and, with `of_others`, if there are none, those
    of others. A name that another artist of the account, or of anybody for those of others, has now means that artist.
    """
    splits: dict[int, list[tuple[str, int, Part]]] = defaultdict(list)
    for name, split, owner, *part in _parts(names) if names else ():
        splits[split].append((name_key(name), owner, Part(*part)))
    if not splits:
        return {}
    now = {(name_key(name), owner) for name, owner in _owners(names)}
    found: dict[bool, dict[str, tuple[Part, ...]]] = {True: {}, False: {}}
    for rows in splits.values():  # the latest come last
        key, own = rows[0][0], any(owner == manager for _, owner, _ in rows)
        if not all(part.id for _, _, part in rows):  # the undo of an import took one back
            continue
        if (key, manager) not in now if own else of_others and key not in {each for each, _ in now}:
            found[own][key] = tuple(part for _, _, part in rows)
    return found[False] | found[True]


def spread(rows: Sequence[Row], manager: int, replace: Callable[[Row, tuple[str, ...]], Row]) -> Sequence[Row]:
    """Return the rows with the names of parts in place of those of artists that were split, whoever manages them.

    `replace`: returns a row with other names.
    """
    names = name_index.spellings({name for row in rows for name in row.artists})
    by_key = parts(names, manager, of_others=True)
    if not by_key:
        return rows
    return [row if (now := _spread(row.artists, by_key)) == row.artists else replace(row, now) for row in rows]


def _spread(names: tuple[str, ...], by_key: dict[str, tuple[Part, ...]]) -> tuple[str, ...]:
    found = (by_key.get(name_key(name), (Part(0, name),)) for name in names)
    return tuple(dict.fromkeys(part.name for some in found for part in some))


@compiled
def _parts(names: Collection[str]) -> Any:
    row = Merged.name, Merged.former, fn.coalesce(Artist.manager, 0), Artist.id, Artist.name
    query = Merged.select(*row).join(Artist, JOIN.LEFT_OUTER, on=(Artist.id == Merged.into)).order_by(Merged.id)
    return query.where(Merged.kind == ARTIST, Merged.former < 0, Merged.name.in_(names))


@compiled
def _owners(names: Collection[str]) -> Any:
    return Artist.select(Artist.name, fn.coalesce(Artist.manager, 0)).where(Artist.name.in_(names))
