"""The columns of a row, selected by the names of its fields."""

from dataclasses import dataclass, field

from peewee import fn

from musicsvc.store.engine.pagination import columns
from musicsvc.store.models import Artist


@dataclass
class ArtistFields:
    """Fields in another order than the columns of the table, one computed, two filled in later."""

    created_at: int
    name: str
    letters: int
    albums: int = 0
    tracks: list[int] = field(default_factory=list)


def test_columns_follow_the_names_of_the_fields_in_their_order() -> None:
    letters = fn.LENGTH(Artist.name)
    created_at, name, length = columns(ArtistFields, Artist, letters=letters)
    assert (created_at.name, name.name) == ("created_at", "name")
    assert length is letters
