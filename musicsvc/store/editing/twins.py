"""Pairs of artists, albums or tracks of an account that are likely the same, proposed for a merge.

They have the same name but for case, accents and punctuation (albums and tracks also an artist in common, compared in
this way), or the same UPC, ISRC or id in another service. Tracks with different ISRCs and albums with different UPCs
are not the same, unless they have the same id.

Artists with the same name under several managers are counted, to warn of them before an import.
"""

import builtins
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import Any, NamedTuple

from peewee import SQL, fn

from musicsvc.store.accounts.managing import managed_by, managed_by_others
from musicsvc.store.catalog import external_ids
from musicsvc.store.editing.merging import Noun
from musicsvc.store.engine.name_index import spellings
from musicsvc.store.engine.name_keys import folded_key, name_key
from musicsvc.store.engine.pagination import Listing, Page
from musicsvc.store.engine.sql import batches
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist, User

CODES = {"album": "upc", "track": "isrc"}
CREDITS: dict[str, tuple[Any, Any]] = {"album": (Album, AlbumArtist), "track": (Track, TrackArtist)}
REASONS = ("isrc", "name", "upc", "id")
PAIR = Struct("<qqB")  # the newer row, the older one, and the reasons as bits
PUNCTUATION = re.compile(r"[\W_]+")


class Twins(NamedTuple):
    """Two rows, the newer one first. `artists`: those of the older one. `reasons`: of REASONS."""

    from_id: int
    into_id: int
    from_name: str
    into_name: str
    artists: tuple[str, ...]
    reasons: tuple[str, ...]


class _Row(NamedTuple):
    id: int
    name: str
    code: str
    external_id: str  # bare
    artists: tuple[str, ...]


def find(noun: Noun, user_id: int) -> bytes:
    """Return the pairs among what the account manages, those with the oldest row first, packed for `list`."""
    found = sorted(_pairs(noun, _rows(noun, _managed(noun, user_id))))
    return b"".join(
        PAIR.pack(newer.id, older.id, sum(1 << REASONS.index(each) for each in reasons))
        for older, newer, reasons in found
    )


def list(noun: Noun, pairs: bytes, page: Page) -> Listing[Twins]:  # noqa: A001 - the module is the namespace
    """Return a page of the pairs that `find` has returned. Those with a row that is deleted meanwhile are left out."""
    total = len(pairs) // PAIR.size

    def load(places: Collection[int]) -> builtins.list[Twins]:
        chosen = [PAIR.unpack_from(pairs, place * PAIR.size) for place in places]
        ids = sorted({row_id for pair in chosen for row_id in pair[:2]})
        rows = {row.id: row for row in _rows(noun, ids)}
        return [
            Twins(newer, older, rows[newer].name, rows[older].name, rows[older].artists, _unpacked(reasons))
            for newer, older, reasons in chosen
            if newer in rows and older in rows
        ]

    return Listing([*range(total)[page.offset : page.offset + page.size]], total, page, load)


def _unpacked(reasons: int) -> tuple[str, ...]:
    return tuple(each for place, each in enumerate(REASONS) if reasons >> place & 1)


def _managed(noun: Noun, user_id: int) -> Any:
    """Select the ids of what the account manages."""
    if noun == "artist":
        return Artist.select(Artist.id).where(managed_by(user_id))
    _, credit = CREDITS[noun]
    return credit.select(getattr(credit, noun)).join(Artist).where(managed_by(user_id))


def _rows(noun: Noun, ids: Any) -> Sequence[_Row]:
    """Return the rows with these ids (a list, or a query that selects them), the oldest first."""
    if noun == "artist":
        query = Artist.select(Artist.id, Artist.name, *[SQL("NULL")] * 3).order_by(Artist.id)
        query = query.where(Artist.id.in_(ids))
    else:
        table, credit = CREDITS[noun]
        codes = getattr(table, CODES[noun]), table.external_id
        query = table.select(table.id, table.name, *codes, Artist.name).join(credit).join(Artist)
        query = query.where(table.id.in_(ids)).order_by(table.id, credit.position, Artist.id)
    rows: dict[int, _Row] = {}
    for number, name, code, external_id, artist in query.tuples().iterator():
        row = rows.get(number) or _Row(number, name, (code or "").lstrip("0"), _bare(noun, external_id), ())
        rows[number] = row._replace(artists=(*row.artists, artist)) if artist is not None else row
    return [*rows.values()]


def _bare(noun: Noun, external_id: str | None) -> str:
    return "" if external_id is None or noun == "artist" else external_ids.bare(external_id, noun)


def _pairs(noun: Noun, rows: Sequence[_Row]) -> Iterator[tuple[_Row, _Row, set[str]]]:
    """Yield each row that has older twins with the oldest of these, and the reasons."""
    alike: dict[Hashable, dict[str, _Row]] = defaultdict(dict)  # the oldest row with each code, or with none
    for row in rows:
        reasons: dict[_Row, set[str]] = defaultdict(set)
        for reason, key in _keys(noun, row):
            known, code = alike[reason, key], "" if reason == "id" else row.code
            same = [known[each] for each in (code, "") if each in known] if code else [*islice(known.values(), 1)]
            if same:
                reasons[min(same)].add(reason)
            known.setdefault(code, row)
        if reasons:
            older = min(reasons)
            yield older, row, reasons[older]


def _keys(noun: Noun, row: _Row) -> Iterator[tuple[str, Hashable]]:
    name = _plain(row.name)
    if noun == "artist":
        yield "name", name
        return
    for artist in {*map(_plain, row.artists)}:
        yield "name", (name, artist)
    if row.code:
        yield CODES[noun], row.code
    if row.external_id:
        yield "id", row.external_id


@lru_cache(4096)
def _plain(name: str) -> str:
    """Return the name without case, accents and punctuation, unless it has nothing else."""
    folded = folded_key(name)
    return PUNCTUATION.sub("", folded) or folded


class OtherManagers(NamedTuple):
    """Artists of others that have certain names: the number of these names, and artists by e-mail of the manager."""

    names: int
    managers: Counter[str | None]  # None: of artists without a manager


def has_others(user_id: int | None) -> bool:
    """Return whether there are artists with another manager than this account (None: with any)."""
    return bool(Artist.select().where(_of_others(user_id)).exists())


def under_others(names: Sequence[str], user_id: int | None) -> OtherManagers:
    """Count the artists with these names that have another manager than this account (None: that have any)."""
    keys, found = set(map(name_key, names)), set[str]()
    managers: Counter[str | None] = Counter()
    for some in batches(names):
        query = Artist.select(Artist.name, User.email).join(User, "LEFT JOIN").distinct()
        for name, other in query.where(Artist.name.in_(spellings(some)), _of_others(user_id)).tuples().iterator():
            if name_key(name) in keys:
                found.add(name_key(name))
                managers[other] += 1
    return OtherManagers(len(found), managers)


def _of_others(user_id: int | None) -> Any:
    return ~managed_by(None) if user_id is None else managed_by_others(user_id)


def under_several() -> int:
    """Count the names of artists that exist under several managers."""
    managers = fn.count(fn.coalesce(Artist.manager, 0).distinct())
    return int(Artist.select(Artist.name).group_by(Artist.name).having(managers > 1).count())
