"""Changes of an album at the same time do not mix."""

from functools import partial

import pytest

from musicsvc.store.catalog import albums, artists
from musicsvc.store.editing import edits
from musicsvc.store.engine.store import Store
from musicsvc.store.models import AlbumArtist, AlbumTag
from tests.conftest import NOW
from tests.support.postgres_locks import require_wait
from tests.support.reported_plays import world


@pytest.mark.only_on("postgres")
def test_of_two_changes_of_an_album_at_once_the_later_one_counts(store: Store) -> None:
    store.write(world).result()
    store.write(lambda: AlbumArtist.create(album=1, artist=1, position=0) and None).result()

    def change(artist: int) -> None:
        edits.edit_album(albums.get(1), {"artist_id": artist, "tags": [f"tag {artist}"]}, now=NOW)

    require_wait(store, partial(change, 1), partial(change, 2))

    credit = store.read(lambda: artists.of_albums([1])).result()
    assert [artist.id for artist in credit[1]] == [2]
    assert store.read(lambda: AlbumTag.select().count()).result() == 1
