"""Playlists: requests, responses, rights."""

import pytest

from musicsvc.clock import isoformat
from tests.support.bounds import Bounds
from tests.support.people import People, make_tracks
from tests.support.shared_server import Shared, on_shared_loop

UNKNOWN = 2**53 - 1
DESCRIPTION = "Slow ones first, then the loud ones."
READS = [("GET", ""), ("GET", "/tracks"), ("GET", "/collaborators")]
EDITS = [("POST", "/tracks/add"), ("POST", "/tracks/remove")]
OWNERS = [("PUT", ""), ("POST", "/invite"), ("DELETE", "")]
pytestmark = on_shared_loop


async def test_a_playlist_comes_back_as_it_was_sent_and_shows_booleans(people: People) -> None:
    sent = {"name": "  Rags  ", "description": DESCRIPTION, "image": "https://img.test/r.png", "public": "1"}

    made = await people.ann.ask.post("playlists", sent)

    assert made.status == 200
    playlist = made.json["playlist"]
    assert list(playlist)[:6] == ["id", "name", "public", "collaborative", "image", "description"]
    assert playlist | {"name": "Rags", "public": True, "collaborative": False} == playlist
    assert playlist["description"] == DESCRIPTION
    assert playlist["owner"]["id"] == people.ann.id
    assert (await people.ann.ask.get(f"playlists/{playlist['id']}")).body == made.body


async def test_a_name_is_enough_and_nothing_else_is_taken_from_the_body(people: People, shared: Shared) -> None:
    sent = {
        "name": "Rags",
        "id": 900,
        "owner_id": people.ben.id,
        "created_at": 5,
        "tracks_count": 3,
        "external_id": "x",
    }

    playlist = (await people.ann.ask.post("playlists", sent)).json["playlist"]

    assert playlist | {"public": False, "collaborative": False, "image": None, "description": None} == playlist
    assert (playlist["owner"]["id"], playlist["tracks_count"]) == (people.ann.id, 0)
    assert playlist["id"] != 900
    assert playlist["created_at"] == isoformat(shared.clock.now())


async def test_patch_changes_what_is_sent_and_nothing_else(people: People) -> None:
    ann = people.ann
    playlist = await ann.playlist(name="Rags", description=DESCRIPTION, image="https://img.test", public=True)
    path = f"playlists/{playlist}"
    before = (await ann.ask.get(path)).json["playlist"]
    for sent, changed in (
        ({}, {}),
        ({"name": None, "image": None}, {"image": None}),
        ({"collaborative": "1", "name": "Marches"}, {"collaborative": True, "name": "Marches"}),
        ({"public": None, "description": None}, {"public": False, "description": None}),
    ):
        before |= changed
        answer = await ann.ask("PATCH", path, sent)
        assert (answer.status, answer.json["playlist"]) == (200, before)
        assert (await ann.ask.get(path)).json == answer.json


@pytest.mark.on_both
async def test_a_track_is_moved_as_in_a_list(people: People, shared: Shared) -> None:
    playlist = await people.ann.playlist()
    order = make_tracks(shared.store, 5)
    order.append(order[0])
    await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": order})
    for first, to in ((1, 6), (6, 1), (2, 4), (5, 2), (3, 3), (6, 5)):
        order.insert(to - 1, order.pop(first - 1))
        answer = await people.ann.ask.post(f"playlists/{playlist}/tracks/move", {"from": first, "to": to})
        assert (answer.status, answer.json["playlist"]["tracks_count"]) == (200, 6)
        rows = (await people.ann.ask.get(f"playlists/{playlist}/tracks")).json["pagination"]["data"]
        assert [row["id"] for row in rows] == order, (first, to)
    beyond = await people.ann.ask.post(f"playlists/{playlist}/tracks/move", {"from": 7, "to": 0})
    assert beyond.json["errors"].keys() == {"from", "to"}


async def test_neither_a_playlist_nor_a_move_is_larger_than_the_bound(
    people: People, shared: Shared, bounds: Bounds
) -> None:
    """One that an import made longer stays."""
    playlist, tracks = await people.ann.playlist(), make_tracks(shared.store, 5)
    path = f"playlists/{playlist}/tracks"
    assert (await people.ann.ask.post(f"{path}/add", {"ids": tracks})).status == 200
    bounds(most_in_playlist=5)
    assert (await people.ann.ask.post(f"{path}/move", {"from": 5, "to": 1})).status == 200
    longer = await people.ann.ask.post(f"{path}/add", {"ids": [tracks[0], UNKNOWN]})
    assert longer.json["errors"].keys() == {"ids", "ids.1"}
    bounds(most_in_playlist=4)
    farther = await people.ann.ask.post(f"{path}/move", {"from": 5, "to": 1})
    assert (farther.status, list(farther.json["errors"])) == (422, ["to"])
    assert (await people.ann.ask.post(f"{path}/move", {"from": 5, "to": 2})).status == 200


@pytest.mark.parametrize("by_path", [True, False])
async def test_put_replaces_the_whole_playlist_but_its_tracks(people: People, shared: Shared, by_path: bool) -> None:
    ann = people.ann
    playlist = await ann.playlist(description=DESCRIPTION, image="https://img.test", public=True, collaborative=True)
    ids = make_tracks(shared.store, 2)
    await ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": ids})

    path, more = (f"playlists/{playlist}", {"id": UNKNOWN}) if by_path else ("playlists", {"id": playlist})
    answer = await ann.ask.put(path, {"name": "Marches"} | more)

    assert answer.status == 200
    expected = {"name": "Marches", "public": False, "collaborative": False, "image": None, "description": None}
    assert answer.json["playlist"] | expected | {"id": playlist, "tracks_count": 2} == answer.json["playlist"]
    assert await ann.tracks(playlist) == ids


async def test_put_without_an_id_replaces_the_callers_oldest_of_exactly_that_name(people: People) -> None:
    await people.ben.playlist(public=True)
    oldest, newer = await people.ann.playlist(), await people.ann.playlist()

    answer = await people.ann.ask.put("playlists", {"name": " Rags ", "public": True, "id": None})

    assert answer.json["playlist"] | {"id": oldest, "public": True} == answer.json["playlist"]
    assert (await people.ann.ask.get(f"playlists/{newer}")).json["playlist"]["public"] is False


async def test_put_without_an_id_creates_where_no_name_is_exactly_the_same(people: People) -> None:
    there = [await people.ann.playlist()]
    for name in ("rags", "Rags 2", "Rägs", "Ragſ"):
        answer = await people.ann.ask.put("playlists", {"name": name})
        assert (answer.status, answer.json["playlist"]["name"]) == (200, name)
        there.insert(0, answer.json["playlist"]["id"])
        assert await people.ann.listed() == there


async def test_a_deleted_playlist_is_gone_and_its_tracks_stay_in_the_catalog(people: People, shared: Shared) -> None:
    playlist, ids = await people.ann.playlist(), make_tracks(shared.store, 1)
    await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": ids})
    await people.ann.shares(playlist, people.ben)

    answer = await people.ann.ask.delete(f"playlists/{playlist}")

    assert (answer.status, answer.json) == (200, {"status": "success"})
    for person in (people.ann, people.ben):
        assert (await person.ask.get(f"playlists/{playlist}")).status == 404
        assert await person.listed() == []
    assert (await people.ann.ask.delete(f"playlists/{playlist}")).status == 404
    assert (await people.ann.ask.get(f"tracks/{ids[0]}")).status == 200


async def test_tracks_stand_in_the_order_in_which_they_were_added(people: People, shared: Shared) -> None:
    playlist, (a, b, c) = await people.ann.playlist(), make_tracks(shared.store, 3)
    await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": [c, a]})
    added = await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": [b, a, a]})

    assert (added.status, added.json["playlist"]["tracks_count"]) == (200, 5)
    assert await people.ann.tracks(playlist) == [c, a, b, a, a]


async def test_removing_takes_every_occurrence_and_ignores_what_is_not_there(people: People, shared: Shared) -> None:
    playlist, (a, b, c) = await people.ann.playlist(), make_tracks(shared.store, 3)
    other = await people.ann.playlist(name="Other")
    for each in (playlist, other):
        await people.ann.ask.post(f"playlists/{each}/tracks/add", {"ids": [a, b, a]})

    answer = await people.ann.ask.post(f"playlists/{playlist}/tracks/remove", {"ids": [a, c, a, UNKNOWN]})

    assert (answer.status, answer.json["playlist"]["tracks_count"]) == (200, 1)
    assert await people.ann.tracks(playlist) == [b]
    assert await people.ann.tracks(other) == [a, b, a]


async def test_anothers_private_playlist_is_answered_as_an_unknown_one(people: People) -> None:
    playlist = await people.ann.playlist()
    ids = {"ids": [1]}
    bodies = {"": {"name": "Mine"}, "/tracks/add": ids, "/tracks/remove": ids, "/invite": {"user_id": people.cleo.id}}
    for method, path in (*READS, *EDITS, *OWNERS):
        theirs, unknown = [
            await people.ben.ask(method, f"playlists/{number}{path}", bodies.get(path))
            for number in (playlist, UNKNOWN)
        ]
        assert (theirs.status, theirs.body) == (404, unknown.body)


async def test_the_list_holds_ones_own_and_shared_playlists_newest_first(people: People) -> None:
    own = await people.ann.playlist()
    await people.ben.playlist(public=True)
    joined, invited = await people.ben.playlist(), await people.ben.playlist()
    newest = await people.ann.playlist(name="Last")
    await people.ben.shares(joined, people.ann)
    await people.ben.ask.post(f"playlists/{invited}/invite", {"user_id": people.ann.id})

    assert await people.ann.listed() == [newest, joined, own]
    await people.ben.ask.put(f"playlists/{joined}", {"name": "Mine again"})
    assert await people.ann.listed() == [newest, own]
