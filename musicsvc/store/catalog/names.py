"""Find artists, albums and tracks by what people type in place of an id."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from musicsvc.errors import Failure
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.catalog.field_texts import is_id
from musicsvc.store.engine.name_index import INDEXES
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.models import Album, AlbumArtist, Artist, Track, TrackArtist
from musicsvc.wording import LONGEST_NAME, cut, name_problem, some_of

LARGEST_ID = 2**63 - 1
SUGGESTED = 500  # names to choose from; others can be typed
LONGEST = 300  # characters of a name with its id
ALIKE = 50  # names that are compared; equal ones are the best matches
WITH_ID = re.compile(r"(.+) \(([0-9]{1,18})\)")
MOST_SHOWN = 8  # of rows with one name
TABLES: Mapping[str, Any] = {"artist": Artist, "album": Album, "track": Track}
LINKS: Mapping[str, Any] = {"album": AlbumArtist, "track": TrackArtist}
# Whether an account (of artists also nobody, 0) manages the artist, album or track {id}.
MANAGED = {
    "artist": "EXISTS (SELECT 1 FROM artist a WHERE a.id = {id} AND coalesce(a.manager_id, 0) = ?)",
    **{
        noun: f"""EXISTS (SELECT 1 FROM {noun}_artist l JOIN artist a ON a.id = l.artist_id
                          WHERE l.{noun}_id = {{id}} AND a.manager_id = ?)"""  # noqa: S608 - our own nouns
        for noun in ("album", "track")
    },
}


def with_id(name: str, row_id: int) -> str:
    """Return a name with its id in one line, such as `Air (7)`, which `find_id` understands."""
    return f"{' '.join(name.split())} ({row_id})"


def managed(noun: str, user_id: int) -> list[str]:
    """Return names with ids (`with_id`) of artists or albums that the account manages, SUGGESTED at most."""
    table = TABLES[noun]
    query = table.select(table.name, table.id).distinct().order_by(table.name, table.id).limit(SUGGESTED)
    query = query if noun == "artist" else query.join(AlbumArtist).join(Artist)
    return [with_id(*row) for row in query.where(managed_by(user_id)).tuples().iterator()]


def find_id(noun: str, text: str, *, manager_id: int | None = None, digits: bool = True) -> int:
    """Return the id that a text means: a name of one row only, a name with its id such as `Air (7)`, or digits alone.

    With `digits` False, digits are a name, too. For an account (`manager_id`), names of what it manages come first.
    Raises Failure if no row or several have the name. The row of digits alone need not exist.
    """
    text = text.strip()
    if len(text) > LONGEST:
        raise Failure(f"There is no {noun} with a name of {len(text):,} characters.")
    if digits and is_id(text):
        return min(int(text), LARGEST_ID)
    managed = _named(noun, text, manager_id) if manager_id is not None else []
    ids = managed or _named(noun, text)
    if len(ids) != 1:
        raise Failure(_several(noun, text, ids) if ids else f"There is no {noun} named {text}.")
    return ids[0]


def is_unknown(noun: str, text: str) -> bool:
    """Return whether a text could be the name of a row, and no row has this name."""
    name = text.strip()
    if not 1 <= len(name) <= LONGEST_NAME or name_problem(name) or as_id(noun, name) is not None:
        return False
    return not _named(noun, name)


def as_id(noun: str, text: str) -> int | None:
    """Return the id that a text means if it is digits alone, or a name with the id of a row that has this name."""
    text = text.strip()
    if is_id(text):
        return min(int(text), LARGEST_ID)
    found = WITH_ID.fullmatch(text)
    table = TABLES[noun]
    if found is None or not table.select().where(table.id == int(found[2]), table.name == found[1]).exists():
        return None
    return int(found[2])


def find_managed(noun: str, name: str, manager_id: int | None) -> int | None:
    """Return the row with this name that an account manages, or nobody (None); None if there is no such row.

    Raises Failure if several rows have the name.
    """
    ids = _named(noun, name, manager_id or 0)
    if len(ids) > 1:
        raise Failure(_several(noun, name, ids))
    return ids[0] if ids else None


def _several(noun: str, name: str, ids: Sequence[int]) -> str:
    shown = [f"{each} by {by}" if (by := _artists(noun, each)) else str(each) for each in ids[:MOST_SHOWN]]
    shown += map(str, ids[MOST_SHOWN:])
    return f"Several {noun}s are named {name}: {some_of(shown, MOST_SHOWN)}. Give an id."


def _artists(noun: str, row_id: int) -> str:
    """Return the names of the artists of an album or track."""
    if (link := LINKS.get(noun)) is None:
        return ""
    names = link.select(Artist.name).join(Artist).where(getattr(link, noun) == row_id).order_by(link.position)
    return " & ".join(cut(name) for (name,) in names.tuples().iterator())


def _named(noun: str, text: str, manager_id: int | None = None) -> list[int]:
    """Return the rows with this name, or with this name and id. `manager_id`: only those that the account manages."""
    condition = None if manager_id is None else (MANAGED[noun], manager_id)
    alike = INDEXES[noun].find(text, ALIKE, condition)
    found = WITH_ID.fullmatch(text)
    name, number = (found[1], int(found[2])) if found else (text, 0)
    table = TABLES[noun]
    rows = table.select(table.id, table.name).where(table.id.in_([*alike, number])).order_by(table.id)
    named = list(rows.tuples().iterator())
    exact = [each for each, called in named if called == text or (each, called) == (number, name)]
    keys = name_key(text), name_key(name)
    return exact or [each for each, called in named if name_key(called) == keys[each == number]]
