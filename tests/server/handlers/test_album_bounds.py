"""An album holds at most 1,000 tracks, and takes at most 768 KiB as JSON."""

import asyncio
from typing import Any

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.catalog import album_sizes
from musicsvc.store.engine.store import Store
from tests.support import large_albums
from tests.support.serving import Client, person

KIBIBYTE = 1024


def track(album: int | None, **more: Any) -> dict[str, Any]:
    return {"name": "One more", "duration": 1000, "artists": [1], "album_id": album} | more


async def total(client: Client) -> int:
    """Return the number of tracks."""
    return int((await client.get("artists/1")).json["artist"]["tracks_count"])


@pytest.mark.on_both
@pytest.mark.slow
async def test_an_album_holds_at_most_1000_tracks_however_many_are_added_at_once(
    client: Client, store: Store, clock: MovableClock
) -> None:
    large_albums.fill(store, albums=2, tracks=997, description="")
    answers = await asyncio.gather(*(client.post("tracks", track(2)) for _ in range(8)))
    assert sorted(answer.status for answer in answers) == [201] * 3 + [422] * 5
    errors = {str(answer.json["errors"]) for answer in answers if answer.status == 422}
    assert errors == {str({"album_id": "An album holds at most 1,000 tracks."})}
    assert len((await client.get("albums/2")).json["album"]["tracks"]) == 1000
    assert await total(client) == 997 + 1000
    for album in (1, None):
        assert (await client.post("tracks", track(album))).status == 201
    stranger = client.holding(person(store, clock, "eve@label.test")[1])
    assert (await stranger.post("tracks", track(2))).status == 403


async def test_an_album_takes_at_most_768_kib(client: Client, store: Store) -> None:
    large_albums.fill(store, albums=1, tracks=large_albums.NEARLY_FULL)
    refused = await client.post("tracks", track(1, description="x" * 10_000, tags=["new"], genre="new"))
    assert refused.status == 422
    assert refused.json["errors"] == {"album_id": "An album with its tracks takes at most 768 KiB as JSON."}
    assert (await client.get("genres")).json["pagination"]["total"] == 0
    assert await total(client) == large_albums.NEARLY_FULL
    # What is left is used to the last bytes.
    left = 768 * KIBIBYTE - store.read(lambda: album_sizes.measure([1])).result()[1].bytes
    around = len('{"id":1234567890,"name":"One more","release_date":null,"image":null,"duration":1000,')
    around += len('"description":"",')
    around += len('"artists":[{"id":1234567890,"name":"Erik Satie","image_small":null,"verified":false},]},')
    for length, status in ((left - around + 1, 422), (left - around, 201)):
        assert (await client.post("tracks", track(1, description="x" * length))).status == status, length
    album = await client.get("albums/1")
    assert 766 * KIBIBYTE < len(album.body) <= 768 * KIBIBYTE
    assert (await client.post("tracks", track(1))).status == 422
