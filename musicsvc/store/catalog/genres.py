"""Genres: the slug is what makes two of them the same, the display name is what was typed first."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from musicsvc.errors import Invalid
from musicsvc.store.engine.dialect import batches, by_code_point
from musicsvc.store.engine.pagination import Listing, Page, paginate
from musicsvc.store.models import Genre

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class GenreRow(NamedTuple):
    """A genre: `name` is the slug."""

    id: int
    name: str
    display_name: str


def slug(text: str) -> str:
    """Return the slug of the genre (docs/api.md); empty if the text has no letter and no digit."""
    # Folding can bring back what NFKC removes, hence the second round; after it a slug is its own slug.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = "".join(_kept(text)).split("-")
    return "-".join(word for word in words if word)


def _kept(text: str) -> Iterable[str]:
    """The characters, a hyphen for each that is none of a word; a mark belongs to the letter that bears it."""
    within = False
    for sign in text:
        within = sign.isalnum() or (within and unicodedata.category(sign).startswith("M"))
        yield sign if within else "-"


def ensure(names: Iterable[str]) -> dict[str, int]:
    """The ids of these genres by slug, those that are missing made; Invalid for a name without letter or digit."""
    typed: dict[str, str] = {}
    for name in names:
        typed.setdefault(slug(name), name.strip())
    if "" in typed:
        raise Invalid({"genre": "The genre must contain a letter or a digit."})
    found = find(list(typed))
    # In one order everywhere, so that two writers of the same new genres wait for each other instead of locking up.
    missing = sorted(set(typed) - set(found))
    if missing:
        rows = [{"name": name, "display_name": typed[name]} for name in missing]
        Genre.insert_many(rows).on_conflict_ignore().execute()
        found |= find(missing)
    return found


def find(slugs: Sequence[str]) -> dict[str, int]:
    """The ids of those that there are, by slug."""
    found: dict[str, int] = {}
    for some in batches(slugs):
        found.update(Genre.select(Genre.name, Genre.id).where(Genre.name.in_(some)).tuples().iterator())
    return found


def listing(page: Page) -> Listing[GenreRow]:
    """All genres by name."""
    rows = Genre.select(Genre.id, Genre.name, Genre.display_name)
    return paginate(Genre.select(Genre.id), rows, [by_code_point(Genre.name), Genre.id], page, GenreRow)
