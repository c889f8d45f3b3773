"""Count artists that exist under several managers, to warn of duplicates before an import."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from musicsvc.errors import Failure
from musicsvc.store.accounts import users
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import guessing, headings
from musicsvc.store.importing.catalog import rows
from musicsvc.store.importing.columns import Columns
from musicsvc.store.importing.files.records import Reader, Record
from musicsvc.store.importing.runner import ImportOptions

NAMES_AT_ONCE = 5000
UNDER_OTHERS = """
    SELECT DISTINCT a.name, u.email FROM artist a LEFT JOIN account u ON u.id = a.manager_id
    WHERE a.name {among} AND a.manager_id IS DISTINCT FROM ?
"""
ANY_OTHER = "SELECT 1 FROM artist WHERE manager_id IS DISTINCT FROM ? LIMIT 1"
TWINS = """
    SELECT count(*) FROM (
        SELECT name FROM artist GROUP BY name HAVING count(DISTINCT coalesce(manager_id, 0)) > 1
    ) AS twins
"""


class Twins(NamedTuple):
    """Artists of a file that exist under other managers: the number of names, and artists by e-mail of the manager."""

    names: int
    managers: Counter[str | None]  # None: of artists without a manager


def of_catalog(open_file: Callable[[], Reader], options: ImportOptions, store: Store) -> Twins:
    """Count the artists of a catalog file that already exist under a manager other than the manager of the import."""
    if not store.read(partial(_others_exist, options.user)).result():
        return Twins(0, Counter())
    with open_file() as reader:
        names = [name for name in dict.fromkeys((*_artists(reader, options), options.artist)) if name]
    return store.read(partial(_under_others, names, options.user)).result()


def of_all(store: Store) -> int:
    """Count the names of artists that exist under several managers."""
    return int(store.read(partial(fetch, TWINS)).result()[0][0])


def _artists(reader: Reader, options: ImportOptions) -> Iterator[str]:
    """Yield the names of artists in the file. Invalid rows are skipped. At a damaged place, the iteration ends."""
    columns = Columns(rows.FIELDS, options.pairs)
    with suppress(Failure):
        for record in guessing.fit(reader.steps(), columns, reader.columns, headings.CATALOG, options.date_format):
            if isinstance(record, Record) and record.fault is None:
                found = columns.read(record.values, options.blanks).values
                for names in (found.get("artist") or (), found.get("album_artist") or ()):
                    yield from names if len(names) <= rows.MOST_ARTISTS else ()


def _others_exist(email: str | None) -> bool:
    return bool(fetch(ANY_OTHER, _manager(email)))


def _manager(email: str | None) -> int | None:
    return None if email is None else int(users.by_email(email).id)


def _under_others(names: Sequence[str], email: str | None) -> Twins:
    manager = _manager(email)
    found: set[str] = set()
    managers: Counter[str | None] = Counter()
    for start in range(0, len(names), NAMES_AT_ONCE):
        among, some = sql.in_list(names[start : start + NAMES_AT_ONCE])
        for name, other in fetch(UNDER_OTHERS.format(among=among), some, manager):
            found.add(name)
            managers[other] += 1
    return Twins(len(found), managers)
