"""Many concurrent clients of one playlist: no change is lost or made twice, and no response is 500."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable

import aiohttp
import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PlaylistInvite
from tests.support.people import Person, join, make_tracks
from tests.support.serving import Answer, Client, running

CLIENTS = 16  # more than the store's threads; of many more, a busy machine answers some with 503
PENDING = 10**16


@pytest.fixture
async def crowd(store: Store, clock: MovableClock) -> AsyncIterator[list[Person]]:
    """Create accounts, each with its own connection."""
    async with (
        running(store, clock) as anonymous,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        client = Client(session, anonymous.root)
        yield [join(client, store, clock, f"person{number}") for number in range(CLIENTS)]


def invite_all(store: Store, playlist: int, people: list[Person], state: str) -> None:
    rows = [
        {"playlist": playlist, "user": person.id, "state": state, "created_at": 0, "expires_at": PENDING}
        for person in people
    ]
    store.write(lambda: PlaylistInvite.insert_many(rows).execute() and None).result()


async def statuses(*answers: Awaitable[Answer]) -> Counter[int]:
    return Counter(answer.status for answer in await asyncio.gather(*answers))


@pytest.mark.on_both
@pytest.mark.slow
async def test_many_clients_edit_one_playlist_and_no_edit_is_lost(crowd: list[Person], store: Store) -> None:
    owner, tracks = crowd[0], make_tracks(store, CLIENTS * 4)
    playlist = await owner.playlist(collaborative=True)
    invite_all(store, playlist, crowd[1:], "accepted")

    async def edit(person: Person, a: int, b: int, c: int, d: int) -> Counter[int]:
        add, remove = f"playlists/{playlist}/tracks/add", f"playlists/{playlist}/tracks/remove"
        edits = ((add, [a, b]), (remove, [a]), (add, [c, d]), (add, [b]), (remove, [d]))
        return Counter([(await person.ask.post(path, {"ids": ids})).status for path, ids in edits])

    parts = [tracks[start : start + 4] for start in range(0, len(tracks), 4)]
    told = await asyncio.gather(*(edit(person, *part) for person, part in zip(crowd, parts, strict=True)))

    assert sum(told, Counter()) == {200: CLIENTS * 5}
    left = await owner.tracks(playlist)
    assert len(left) == CLIENTS * 3
    for _, b, c, _ in parts:
        assert [each for each in left if each in (b, c)] == [b, c, b]


async def test_a_playlist_edited_by_many_while_its_owner_replaces_it_keeps_both(
    crowd: list[Person], store: Store
) -> None:
    owner, tracks = crowd[0], make_tracks(store, CLIENTS)
    playlist = await owner.playlist(collaborative=True)
    invite_all(store, playlist, crowd[1:], "accepted")

    told = await statuses(
        *(
            person.ask.post(f"playlists/{playlist}/tracks/add", {"ids": [track]})
            for person, track in zip(crowd, tracks, strict=True)
        ),
        *(owner.ask.put("playlists", {"name": "Rags", "collaborative": True}) for _ in range(8)),
        *(owner.ask.put(f"playlists/{playlist}", {"name": "Rags", "collaborative": "1"}) for _ in range(8)),
    )

    assert told == {200: CLIENTS + 16}
    assert sorted(await owner.tracks(playlist)) == tracks
    assert await owner.listed() == [playlist]


async def test_putting_one_new_name_at_once_makes_one_playlist(crowd: list[Person]) -> None:
    owner = crowd[0]

    answers = await asyncio.gather(*(owner.ask.put("playlists", {"name": "Marches"}) for _ in range(CLIENTS)))

    assert {answer.status for answer in answers} == {200}
    assert {answer.json["playlist"]["id"] for answer in answers} == set(await owner.listed())
    assert len(await owner.listed()) == 1


async def test_inviting_one_user_at_once_invites_once(crowd: list[Person]) -> None:
    owner, other = crowd[:2]
    playlist = await owner.playlist()

    told = await statuses(
        *(owner.ask.post(f"playlists/{playlist}/invite", {"user_id": other.id}) for _ in range(CLIENTS))
    )

    assert told == {200: 1, 409: CLIENTS - 1}


@pytest.mark.on_both
@pytest.mark.slow
async def test_an_invitation_that_is_accepted_and_declined_at_once_is_answered_once(
    crowd: list[Person], store: Store
) -> None:
    playlist = await crowd[0].playlist(collaborative=True)
    invite_all(store, playlist, crowd[1:], "pending")

    told = await statuses(
        *(
            person.ask.post(f"playlists/{playlist}/{answer}-invite")
            for person in crowd[1:]
            for answer in ("accept", "decline")
        )
    )

    assert told == {200: CLIENTS - 1, 409: CLIENTS - 1}


async def test_a_playlist_deleted_under_its_editors_is_gone_for_all(crowd: list[Person], store: Store) -> None:
    owner, tracks = crowd[0], make_tracks(store, 1)
    playlist = await owner.playlist(collaborative=True)
    invite_all(store, playlist, crowd[1:], "accepted")

    told = await statuses(
        *(person.ask.post(f"playlists/{playlist}/tracks/add", {"ids": tracks}) for person in crowd[1:]),
        *(owner.ask.delete(f"playlists/{playlist}") for _ in range(2)),
    )

    assert set(told) <= {200, 404}
    assert (await owner.ask.get(f"playlists/{playlist}")).status == 404
