"""Genres, identified by their slug, and tags, free text identified by exact spelling.

The display name of a genre is the spelling with which it was created.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from musicsvc.errors import Invalid
from musicsvc.store.engine import list_blocks
from musicsvc.store.engine.pagination import Listing, ListQuery, Page, paginate
from musicsvc.store.engine.sql import compiled
from musicsvc.store.models import Genre, Tag


class GenreRow(NamedTuple):
    """A genre. `name` is its slug, `display_name` the spelling with which it was created."""

    id: int
    name: str
    display_name: str


def slug(text: str) -> str:
    """Return the slug of a genre's name: its words in lower case, joined by `-` (docs/api.md). It may be empty."""
    # Case folding can produce characters that NFKC changes, so a second round is needed to make slugs stable.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = "".join(_kept(text)).split("-")
    return "-".join(word for word in words if word)


def _kept(text: str) -> Iterable[str]:
    """Yield letters and digits with their combining marks as they are, and `-` in place of every other character."""
    within = False
    for character in text:
        within = character.isalnum() or (within and unicodedata.category(character).startswith("M"))
        yield character if within else "-"


def ensure(names: Iterable[str]) -> dict[str, int]:
    """Create the genres that do not exist. Return slug → id of all `names`. Raises Invalid if a slug is empty."""
    typed: dict[str, str] = {}
    for name in names:
        typed.setdefault(slug(name), name.strip())
    if "" in typed:
        raise Invalid({"genre": "The genre must contain a letter or a digit."})
    return _ensure(Genre, {name: {"name": name, "display_name": typed[name]} for name in typed})


def ensure_tags(names: Iterable[str]) -> dict[str, int]:
    """Create the tags that do not exist. Return name → id of all tags in `names`."""
    return _ensure(Tag, {name: {"name": name} for name in map(str.strip, names)})


def _ensure(table: type[Genre | Tag], rows: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    found = find(list(rows), table)
    # Sorted, so that two transactions that insert the same rows wait for each other without a deadlock.
    missing = sorted(rows.keys() - found.keys())
    if missing:
        table.insert_many([rows[name] for name in missing]).on_conflict_ignore().execute()
        found |= find(missing, table)
    return found


def find(names: Sequence[str], table: type[Genre | Tag] = Genre) -> dict[str, int]:
    """Return slug → id of the genres, or name → id of the tags, that exist. Other names are omitted."""
    return dict(_find(names, table=table)) if names else {}


@compiled
def _find(names: Sequence[str], *, table: type[Genre | Tag]) -> Any:
    return table.select(table.name, table.id).where(table.name.in_(names))


def list_all(page: Page) -> Listing[GenreRow]:
    return paginate(_all, page, GenreRow, counted=list_blocks.GENRES)


def _all() -> ListQuery:
    rows = Genre.select(Genre.id, Genre.name, Genre.display_name)
    return ListQuery(Genre.select(Genre.id), rows, [Genre.name, Genre.id])
