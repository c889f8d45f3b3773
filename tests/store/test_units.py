"""What holds for units on either store."""

from musicsvc.store.database import Store
from musicsvc.store.models import Genre


def test_what_a_unit_writes_is_there_for_the_next_reader(store: Store) -> None:
    store.write(lambda: Genre.create(name="hip-hop", display_name="Hip-Hop")).result()

    assert store.read(lambda: [genre.name for genre in Genre.select()]).result() == ["hip-hop"]
