"""Invitations: accepted, declined, expired and refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from musicsvc.clock import DAY
from tests.support.people import People, make_tracks
from tests.support.serving import Answer, Client
from tests.support.shared_server import Shared, on_shared_loop

UNKNOWN = 2**53 - 1
pytestmark = on_shared_loop


async def invite(people: People, playlist: int, user_id: Any = None) -> Answer:
    """Let Ann invite Ben or another account."""
    sent = {"user_id": people.ben.id if user_id is None else user_id}
    return await people.ann.ask.post(f"playlists/{playlist}/invite", sent)


async def answers(people: People, playlist: int, answer: str) -> Answer:
    return await people.ben.ask.post(f"playlists/{playlist}/{answer}-invite")


async def test_inviting_makes_the_playlist_collaborative(people: People) -> None:
    playlist = await people.ann.playlist()

    answer = await invite(people, playlist)

    assert (answer.status, answer.json) == (200, {"status": "success", "message": "Invitation sent successfully."})
    assert (await people.ann.ask.get(f"playlists/{playlist}")).json["playlist"]["collaborative"] is True


async def test_who_is_merely_invited_sees_the_playlist_only_in_the_answer_to_accepting(people: People) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)

    assert (await people.ben.ask.get(f"playlists/{playlist}")).status == 404
    assert (await people.ben.ask.get(f"playlists/{playlist}/tracks")).status == 404
    accepted = await answers(people, playlist, "accept")
    assert (accepted.status, accepted.json["playlist"]["id"]) == (200, playlist)
    assert (await people.ben.ask.get(f"playlists/{playlist}")).json == accepted.json


async def switch_off_by_path(ann: Client, playlist: int, **fields: Any) -> Answer:
    return await ann.put(f"playlists/{playlist}", {"name": "Rags"} | fields)


async def switch_off_by_id(ann: Client, playlist: int, **fields: Any) -> Answer:
    return await ann.put("playlists", {"id": playlist, "name": "Rags", "collaborative": "0"} | fields)


async def switch_off_by_name(ann: Client, _playlist: int, **fields: Any) -> Answer:
    return await ann.put("playlists", {"name": "Rags", "collaborative": None} | fields)


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("switch_off", [switch_off_by_path, switch_off_by_id, switch_off_by_name])
async def test_switching_collaborative_off_ends_collaborations_for_good(
    people: People, shared: Shared, switch_off: Callable[..., Awaitable[Answer]], *, public: bool
) -> None:
    playlist, ids = await people.ann.playlist(), make_tracks(shared.store, 1)
    untouched = await people.ann.playlist(name="Marches")
    for each in (playlist, untouched):
        await people.ann.shares(each, people.ben)

    async def rights() -> tuple[int, int, bool]:
        read = await people.ben.ask.get(f"playlists/{playlist}")
        edit = await people.ben.ask.post(f"playlists/{playlist}/tracks/add", {"ids": ids})
        return read.status, edit.status, playlist in await people.ben.listed()

    none = (200, 403, False) if public else (404, 404, False)
    assert await rights() == (200, 200, True)
    assert (await switch_off(people.ann.ask, playlist, public=public)).json["playlist"]["id"] == playlist
    assert await rights() == none
    await people.ann.ask.put(f"playlists/{playlist}", {"name": "Rags", "public": public, "collaborative": True})
    assert await rights() == none
    await switch_off(people.ann.ask, playlist, public=public)
    assert (await invite(people, playlist, people.cleo.id)).status == 200
    assert await rights() == none

    await people.ann.shares(playlist, people.ben)
    assert await rights() == (200, 200, True)
    assert untouched in await people.ben.listed()


async def test_replacing_a_playlist_that_stays_collaborative_keeps_its_collaborators(people: People) -> None:
    playlist = await people.ann.playlist()
    await people.ann.shares(playlist, people.ben)
    await invite(people, playlist, people.cleo.id)

    await people.ann.ask.put(f"playlists/{playlist}", {"name": "Marches", "collaborative": True})

    assert playlist in await people.ben.listed()
    assert (await people.cleo.ask.post(f"playlists/{playlist}/accept-invite")).status == 200


async def test_nobody_invites_themselves_or_somebody_unknown(people: People) -> None:
    playlist = await people.ann.playlist()

    for sent in (people.ann.id, UNKNOWN, 0, str(people.ben.id), None, True):
        answer = await people.ann.ask.post(f"playlists/{playlist}/invite", {"user_id": sent})
        assert (answer.status, list(answer.json["errors"])) == (422, ["user_id"])
    assert (await people.ann.ask.get(f"playlists/{playlist}")).json["playlist"]["collaborative"] is False


async def test_inviting_twice_is_a_conflict_before_and_after_the_answer(people: People) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)

    assert (await invite(people, playlist)).status == 409
    await answers(people, playlist, "accept")
    again = await invite(people, playlist)
    assert (again.status, again.json["message"]) == (409, "This user is already a collaborator of the playlist.")
    assert (await invite(people, playlist, people.cleo.id)).status == 200


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_without_an_invitation_there_is_nothing_to_answer(people: People, answer: str) -> None:
    private, public = await people.ann.playlist(), await people.ann.playlist(public=True)
    await invite(people, private, people.cleo.id)

    replies = [await answers(people, playlist, answer) for playlist in (private, public, UNKNOWN)]

    assert [reply.status for reply in replies] == [404] * 3
    assert len({reply.body for reply in replies}) == 1
    assert (await people.ann.ask.post(f"playlists/{private}/{answer}-invite")).status == 404


@pytest.mark.parametrize("first", ["accept", "decline"])
@pytest.mark.parametrize("second", ["accept", "decline"])
async def test_an_invitation_is_answered_once(people: People, first: str, second: str) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)
    assert (await answers(people, playlist, first)).json["playlist"]["id"] == playlist

    again = await answers(people, playlist, second)

    assert (again.status, again.json["errors"]) == (409, {})
    assert f"You have already {first.removesuffix('e')}ed this invitation" in again.json["message"]
    assert (await people.ben.ask.get(f"playlists/{playlist}")).status == (200 if first == "accept" else 404)


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_an_invitation_lives_seven_days(people: People, shared: Shared, answer: str) -> None:
    playlists = [await people.ann.playlist(name=name) for name in ("One", "Two")]
    for playlist in playlists:
        await invite(people, playlist)

    shared.clock.advance(7 * DAY - 1)
    assert (await answers(people, playlists[0], answer)).status == 200
    shared.clock.advance(1)
    late = await answers(people, playlists[1], answer)
    assert (late.status, late.json["message"]) == (
        409,
        "This invitation has expired. Ask the owner to invite you again.",
    )
    assert (await people.ben.ask.get(f"playlists/{playlists[1]}")).status == 404


async def test_who_declined_or_let_it_expire_can_be_invited_again(people: People, shared: Shared) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)
    await answers(people, playlist, "decline")

    assert (await invite(people, playlist)).status == 200
    shared.clock.advance(7 * DAY - 1)
    assert (await invite(people, playlist)).status == 409
    shared.clock.advance(1)
    assert (await invite(people, playlist)).status == 200
    shared.clock.advance(7 * DAY - 1)
    assert (await answers(people, playlist, "accept")).status == 200


@pytest.mark.parametrize("answer", ["accept", "decline"])
async def test_switching_collaborative_off_ends_open_invitations_for_good(people: People, answer: str) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)
    await switch_off_by_path(people.ann.ask, playlist)

    assert (await answers(people, playlist, answer)).status == 404
    await people.ann.ask.put(f"playlists/{playlist}", {"name": "Rags", "collaborative": True})
    assert (await answers(people, playlist, answer)).status == 404
    assert (await invite(people, playlist)).status == 200
    assert (await answers(people, playlist, answer)).status == 200


async def test_a_declined_invitation_stays_declined_when_collaborative_is_switched_off(people: People) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)
    await answers(people, playlist, "decline")
    await switch_off_by_path(people.ann.ask, playlist)

    again = await answers(people, playlist, "accept")

    assert (again.status, again.json["message"][:41]) == (409, "You have already declined this invitation")


async def test_an_invitation_goes_with_its_playlist(people: People) -> None:
    playlist = await people.ann.playlist()
    await invite(people, playlist)
    await people.ann.ask.delete(f"playlists/{playlist}")

    assert (await answers(people, playlist, "accept")).status == 404


async def test_open_invitations_are_listed_until_they_are_answered_or_expire(people: People, shared: Shared) -> None:
    playlists = [await people.ann.playlist() for _ in range(3)]
    for playlist in playlists:
        await invite(people, playlist)

    async def listed() -> list[int]:
        rows = (await people.ben.ask.get("playlists/invitations")).json["pagination"]["data"]
        assert {row["inviter"]["id"] for row in rows} <= {people.ann.id}
        return [row["playlist"]["id"] for row in rows]

    assert await listed() == playlists[::-1]
    await answers(people, playlists[0], "accept")
    await answers(people, playlists[1], "decline")
    assert await listed() == playlists[2:]
    shared.clock.advance(7 * DAY)
    assert await listed() == []


async def test_a_collaborator_leaves_and_is_removed_and_can_be_invited_again(people: People) -> None:
    playlist = await people.ann.playlist(public=True)
    for path, client in (("me", people.ben.ask), (str(people.ben.id), people.ben.ask), (people.ben.id, people.ann.ask)):
        assert (await invite(people, playlist)).status == 200
        await answers(people, playlist, "accept")
        rows = (await people.ann.ask.get(f"playlists/{playlist}/collaborators")).json["pagination"]["data"]
        assert [row["id"] for row in rows] == [people.ben.id]
        for status in (200, 404):
            assert (await client.delete(f"playlists/{playlist}/collaborators/{path}")).status == status
        assert (await people.ben.ask.post(f"playlists/{playlist}/tracks/remove", {"ids": [1]})).status == 403
    for nobody in ("0", "x", "9" * 17, UNKNOWN):
        assert (await people.ann.ask.delete(f"playlists/{playlist}/collaborators/{nobody}")).status == 404
    assert (await people.ben.ask.delete(f"playlists/{playlist}/collaborators/{people.ann.id}")).status == 403
