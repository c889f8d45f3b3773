"""Likes and reposts: added once, removed, and counted."""

import asyncio
from uuid import uuid4

import pytest

from musicsvc.store.models import TrackLike, TrackRepost
from tests.support.people import People, join, make_tracks
from tests.support.serving import Client
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop


@pytest.fixture
def track(shared: Shared) -> int:
    return make_tracks(shared.store, 1)[0]


async def _counts(client: Client, track: int) -> tuple[int, int]:
    """Return the counts of the moment: the path is new, while cached answers may show counts of 5 seconds ago."""
    shown = (await client.get(f"tracks/{track}?request={uuid4()}")).json["track"]
    return shown["likes_count"], shown["reposts_count"]


async def test_a_like_and_a_repost_count_once_until_they_are_taken_back(people: People, track: int) -> None:
    ann, ben, _ = people
    for who, action, expected in (
        (ann, "like", (1, 0)),
        (ann, "like", (1, 0)),
        (ben, "like", (2, 0)),
        (ben, "repost", (2, 1)),
        (ben, "repost", (2, 1)),
        (ann, "unrepost", (2, 1)),
        (ann, "unlike", (1, 1)),
        (ann, "unlike", (1, 1)),
        (ann, "like", (2, 1)),
        (ben, "unrepost", (2, 0)),
    ):
        answer = await who.ask.post(f"tracks/{track}/{action}")
        assert (answer.status, answer.json) == (200, {"status": "success"})
        assert await _counts(ann.ask, track) == expected


async def test_counts_are_exact_however_many_react_at_once(shared: Shared, track: int) -> None:
    clients = [join(*shared, f"fan{number}", "fans.test").ask for number in range(16)]
    noise = ("like", "repost", "like", "unlike", "like", "unrepost", "repost")

    async def counted(actions: tuple[str, ...]) -> tuple[int, int]:
        await asyncio.gather(*(client.post(f"tracks/{track}/{action}") for client in clients for action in actions))
        return await _counts(clients[0], track)

    def kept() -> tuple[int, int]:
        likes, reposts = (TrackLike.track == track, TrackRepost.track == track)
        return TrackLike.select().where(likes).count(), TrackRepost.select().where(reposts).count()

    assert await counted(noise) == shared.store.read(kept).result()
    assert await counted(("like", "repost")) == (16, 16)
    assert await counted(("unlike", "unrepost")) == (0, 0)
