"""Search for tracks, albums and artists by name, ISRC or UPC, among those that an account manages."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.catalog import identifiers, names
from musicsvc.store.engine.name_index import ALBUMS, ARTISTS, TRACKS, NameIndex, rank
from musicsvc.store.engine.sql import compiled
from musicsvc.store.insights import belonging, export_rows
from musicsvc.store.models import Artist, Merged
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups.reader import Reader, all_time_plays
from musicsvc.store.plays.subjects import ALBUM, ARTIST, NOUNS, TRACK, Subject

PER_PAGE = 20  # results of each kind
MOST = 100_000  # results of a table
FEW = 1000  # names of an account that are compared one by one, whatever the catalogs of others contain
INDEXES: dict[int, NameIndex] = {ARTIST: ARTISTS, ALBUM: ALBUMS, TRACK: TRACKS}


class Result(NamedTuple):
    """A track, album or artist with the names of its artists, its plays in a window, and its plays of all time."""

    subject: Subject
    name: str
    artists: tuple[str, ...]
    plays: int
    plays_total: int


class ResultPage(NamedTuple):
    """Results of one page, artists first, then albums, then tracks. `more`: whether there is another page."""

    results: list[Result]
    more: bool


def find(
    text: str,
    user_id: int,
    window: Window,
    page: int = 1,
    *,
    kinds: Iterable[int] = tuple(INDEXES),
    per_page: int = PER_PAGE,
) -> ResultPage:
    """Return a page of the artists, albums and tracks of the account that match the text.

    Of each kind, results with the text as their ISRC (with or without hyphens) or UPC come first, then names in the
    order of the search index. A page has `per_page` results of each kind.
    """
    found: list[Result] = []
    more = False
    for kind in kinds:
        ids = _ids(kind, text, user_id, page * per_page + 1)
        more = more or len(ids) > page * per_page
        found += results(kind, ids[(page - 1) * per_page : page * per_page], window)
    return ResultPage(found, more)


def matching(kind: int, text: str, user_id: int) -> list[int]:
    """Return the ids of the artists, albums or tracks of the account that match the text."""
    return _ids(kind, text, user_id, MOST)


def _ids(kind: int, text: str, user_id: int, limit: int) -> list[int]:
    few = _names(user_id, kind=kind)
    if len(few) <= FEW:
        ranked = ((rank(name, text), each) for each, name in set(few))  # credits of several artists repeat
        named = [each for _, each in sorted((place, each) for place, each in ranked if place is not None)]
    else:
        named = INDEXES[kind].find(text, limit, (names.MANAGED[NOUNS[kind]], user_id))
    return list(dict.fromkeys(_by_code(kind, text.strip(), user_id, limit) + named))[:limit]


def _by_code(kind: int, text: str, user_id: int, limit: int) -> list[int]:
    """Return the albums with the text as their UPC, or the tracks with it as their ISRC, newest first."""
    code = identifiers.as_isrc(text)
    codes = {ALBUM: identifiers.spellings_of_upc(text), TRACK: [code] if code else []}.get(kind)
    if not codes:
        return []
    return [each for (each,) in _with_code(codes, user_id, limit, kind=kind)]


@compiled
def _names(user_id: int, *, kind: int) -> Any:
    """Select ids and names of what the account manages; credits of several artists repeat."""
    if kind == ARTIST:
        return Artist.select(Artist.id, Artist.name).where(managed_by(user_id)).limit(FEW + 1)
    row, credited = belonging.ROWS[kind], belonging.CREDITED[kind]
    query = credited.model.select(row.id, row.name).join(Artist).switch(credited.model).join(row)
    return query.where(managed_by(user_id)).limit(FEW + 1)


@compiled
def _with_code(codes: Sequence[str], user_id: int, limit: int, *, kind: int) -> Any:
    """Select the albums or tracks with a code, or into which one with the code was merged."""
    row = belonging.ROWS[kind]
    code = row.upc if kind == ALBUM else row.isrc
    merged = Merged.select(Merged.into).where(Merged.kind == kind, Merged.code.in_(codes))
    found = row.id.in_(row.select(row.id).where(code.in_(codes)).union_all(merged))
    query = row.select(row.id).where(found, belonging.is_managed(kind, row.id, user_id))
    return query.order_by(row.id.desc()).limit(limit)


def results(kind: int, ids: Sequence[int], window: Window) -> list[Result]:
    """Return artists, albums or tracks with their plays, in the order of the ids."""
    if not ids:
        return []
    titled = export_rows.titled(kind, ids)
    within, ever = Reader(window, all_time=False).plays(kind, sorted(ids)), all_time_plays(kind, ids)
    return [Result(*titled[each], within.get(each, 0), ever.get(each, 0)) for each in ids]
