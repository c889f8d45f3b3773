"""Pairs of artists, albums or tracks of an account that are likely the same, proposed for a merge.

They have the same name but for case, accents and punctuation (albums and tracks also an artist in common, compared in
this way), or the same UPC or ISRC. Tracks with different ISRCs and albums with different UPCs are not the same.
"""

import builtins
import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import NamedTuple

from musicsvc.store.editing.merging import Noun
from musicsvc.store.engine.name_index import fold
from musicsvc.store.engine.pagination import Listing, Page
from musicsvc.store.engine.sql import fetch

CODES = {"album": "upc", "track": "isrc"}
REASONS = ("isrc", "name", "upc")
NAMED = {"artist": "SELECT id, name, NULL, NULL FROM artist WHERE id IN ({}) ORDER BY id"} | {
    noun: f"""
        SELECT t.id, t.name, t.{code}, a.name
        FROM {noun} t JOIN {noun}_artist l ON l.{noun}_id = t.id JOIN artist a ON a.id = l.artist_id
        WHERE t.id IN ({{}}) ORDER BY t.id, l.position, a.id
    """  # noqa: S608 - our own nouns
    for noun, code in CODES.items()
}
MANAGED = {"artist": "SELECT id FROM artist WHERE manager_id = ?"} | {
    noun: f"SELECT m.{noun}_id FROM {noun}_artist m JOIN artist b ON b.id = m.artist_id WHERE b.manager_id = ?"  # noqa: S608 - our own nouns
    for noun in CODES
}
ROWS = {noun: statement.format(MANAGED[noun]) for noun, statement in NAMED.items()}
PAIR = Struct("<qqB")  # the newer row, the older one, and the reasons as bits
PUNCTUATION = re.compile(r"[\W_]+")


class Twins(NamedTuple):
    """Two rows, the newer one first. `artists`: those of the older one. `reasons`: of `name`, `isrc` and `upc`."""

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
    artists: tuple[str, ...]


def find(noun: Noun, user_id: int) -> bytes:
    """Return the pairs among what the account manages, those with the oldest row first, packed for `list`."""
    found = sorted(_pairs(noun, _rows(ROWS[noun], user_id)))
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
        rows = {row.id: row for row in _rows(NAMED[noun].format(", ".join("?" * len(ids))), *ids)}
        return [
            Twins(newer, older, rows[newer].name, rows[older].name, rows[older].artists, _unpacked(reasons))
            for newer, older, reasons in chosen
            if newer in rows and older in rows
        ]

    return Listing([*range(total)[page.offset : page.offset + page.size]], total, page, load)


def _unpacked(reasons: int) -> tuple[str, ...]:
    return tuple(each for place, each in enumerate(REASONS) if reasons >> place & 1)


def _rows(statement: str, *values: int) -> Sequence[_Row]:
    rows: dict[int, _Row] = {}
    for number, name, code, artist in fetch(statement, *values):
        row = rows.get(number) or _Row(number, name, (code or "").lstrip("0"), ())
        rows[number] = row._replace(artists=(*row.artists, artist)) if artist is not None else row
    return [*rows.values()]


def _pairs(noun: Noun, rows: Sequence[_Row]) -> Iterator[tuple[_Row, _Row, set[str]]]:
    """Yield each row that has older twins with the oldest of these, and the reasons."""
    alike: dict[Hashable, dict[str, _Row]] = defaultdict(dict)  # the oldest row with each code, or with none
    for row in rows:
        reasons: dict[_Row, set[str]] = defaultdict(set)
        for reason, key in _keys(noun, row):
            known = alike[reason, key]
            same = (
                [known[code] for code in (row.code, "") if code in known] if row.code else [*islice(known.values(), 1)]
            )
            if same:
                reasons[min(same)].add(reason)
            known.setdefault(row.code, row)
        if reasons:
            older = min(reasons)
            yield older, row, reasons[older]


def _keys(noun: Noun, row: _Row) -> Iterator[tuple[str, Hashable]]:
    name = _plain(row.name)
    if noun == "artist":
        yield "name", name
        return
    for artist in row.artists:
        yield "name", (name, _plain(artist))
    if row.code:
        yield CODES[noun], row.code


@lru_cache(4096)
def _plain(name: str) -> str:
    """Return the name without case, accents and punctuation, unless it has nothing else."""
    folded = fold(name)
    return PUNCTUATION.sub("", folded) or folded
