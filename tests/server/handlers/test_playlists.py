"""Playlists: requests, responses, rights."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.clock import MovableClock
from musicsvc.server.schemas.playlists import PlaylistIn
from musicsvc.server.schemas.reading import check
from musicsvc.store.engine.store import Store
from tests.support.playlist_world import People, make_tracks
from tests.support.playlist_world import people as new_people
from tests.support.serving import Client

UNKNOWN = 2**53 - 1
DESCRIPTION = "Slow ones first, then the loud ones."
READS = [("GET", ""), ("GET", "/tracks")]
EDITS = [("POST", "/tracks/add"), ("POST", "/tracks/remove")]
OWNERS = [("PUT", ""), ("POST", "/invite"), ("DELETE", "")]


@pytest.fixture
def people(anonymous: Client, store: Store, clock: MovableClock) -> People:
    return new_people(anonymous, store, clock)


@pytest.fixture
def bodies(store: Store, people: People) -> dict[str, Any]:
    """A valid body for each path below a playlist."""
    ids = {"ids": make_tracks(store, 1)}
    return {"": {"name": "Mine now"}, "/tracks/add": ids, "/tracks/remove": ids, "/invite": {"user_id": people.cleo.id}}


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


async def test_a_name_is_enough_and_nothing_else_is_taken_from_the_body(people: People) -> None:
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
    assert playlist["created_at"] == "2026-03-01T12:00:00.000000Z"


SPELLINGS = {"true": True, "1": True, "false": False, "0": False, "": False}


async def test_a_switch_can_be_spelled_in_these_ways(people: People) -> None:
    spellings = [(True, True), (False, False), (None, False), *SPELLINGS.items(), (" true ", True), ("  ", False)]
    for value, stands_for in spellings:
        made = (await people.ann.ask.post("playlists", {"name": "Rags", "public": value, "collaborative": value})).json
        assert (made["playlist"]["public"], made["playlist"]["collaborative"]) == (stands_for, stands_for), value


@given(st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text() | st.lists(st.booleans(), max_size=2))
def test_a_switch_takes_nothing_else(value: Any) -> None:
    expected = SPELLINGS.get(value.strip()) if isinstance(value, str) else value
    expected = False if value is None else expected

    body, faults = check(PlaylistIn, {"name": "Rags", "public": value}, {})

    if isinstance(expected, bool):
        assert body is not None
        assert body.public is expected
    else:
        assert list(faults) == ["public"]


async def test_all_faulty_fields_are_told_at_once(people: People) -> None:
    sent = {"name": "", "description": "short", "image": "x", "public": "maybe", "collaborative": []}

    answer = await people.ann.ask.post("playlists", sent)

    assert (answer.status, set(answer.json["errors"])) == (422, set(sent))


@pytest.mark.parametrize("by_path", [True, False])
async def test_put_replaces_the_whole_playlist_but_its_tracks(people: People, store: Store, by_path: bool) -> None:
    ann = people.ann
    playlist = await ann.playlist(description=DESCRIPTION, image="https://img.test", public=True, collaborative=True)
    ids = make_tracks(store, 2)
    await ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": ids})

    path, more = (f"playlists/{playlist}", {"id": UNKNOWN}) if by_path else ("playlists", {"id": playlist})
    answer = await ann.ask.put(path, {"name": "Marches"} | more)

    assert answer.status == 200
    expected = {"name": "Marches", "public": False, "collaborative": False, "image": None, "description": None}
    assert answer.json["playlist"] | expected | {"id": playlist, "tracks_count": 2} == answer.json["playlist"]
    assert await ann.tracks(playlist) == ids


async def test_put_with_an_id_is_404_or_403_once_the_fields_are_sound(people: People) -> None:
    private, public, shared = [await people.ben.playlist(public=public) for public in (False, True, False)]
    await people.ben.shares(shared, people.ann)

    for playlist, status in ((UNKNOWN, 404), (private, 404), (public, 403), (shared, 403)):
        assert (await people.ann.ask.put("playlists", {"id": playlist, "name": "Mine"})).status == status
        assert (await people.ann.ask.put("playlists", {"id": playlist, "name": ""})).status == 422
    for sent in (0, "1", 1.0, True, 2**53):
        answer = await people.ann.ask.put("playlists", {"id": sent, "name": "Mine"})
        assert (answer.status, list(answer.json["errors"])) == (422, ["id"])
    assert (await people.ben.ask.get(f"playlists/{public}")).json["playlist"]["name"] == "Rags"


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


async def test_a_deleted_playlist_is_gone_and_its_tracks_stay_in_the_catalog(people: People, store: Store) -> None:
    playlist, ids = await people.ann.playlist(), make_tracks(store, 1)
    await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": ids})
    await people.ann.shares(playlist, people.ben)

    answer = await people.ann.ask.delete(f"playlists/{playlist}")

    assert (answer.status, answer.json) == (200, {"status": "success"})
    for person in (people.ann, people.ben):
        assert (await person.ask.get(f"playlists/{playlist}")).status == 404
        assert await person.listed() == []
    assert (await people.ann.ask.delete(f"playlists/{playlist}")).status == 404
    assert (await people.ann.ask.get(f"tracks/{ids[0]}")).status == 200


async def test_tracks_stand_in_the_order_in_which_they_were_added(people: People, store: Store) -> None:
    playlist, (a, b, c) = await people.ann.playlist(), make_tracks(store, 3)
    await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": [c, a]})
    added = await people.ann.ask.post(f"playlists/{playlist}/tracks/add", {"ids": [b, a, a]})

    assert (added.status, added.json["playlist"]["tracks_count"]) == (200, 5)
    assert await people.ann.tracks(playlist) == [c, a, b, a, a]


async def test_removing_takes_every_occurrence_and_ignores_what_is_not_there(people: People, store: Store) -> None:
    playlist, (a, b, c) = await people.ann.playlist(), make_tracks(store, 3)
    other = await people.ann.playlist(name="Other")
    for each in (playlist, other):
        await people.ann.ask.post(f"playlists/{each}/tracks/add", {"ids": [a, b, a]})

    answer = await people.ann.ask.post(f"playlists/{playlist}/tracks/remove", {"ids": [a, c, a, UNKNOWN]})

    assert (answer.status, answer.json["playlist"]["tracks_count"]) == (200, 1)
    assert await people.ann.tracks(playlist) == [b]
    assert await people.ann.tracks(other) == [a, b, a]


@pytest.mark.parametrize("what", ["add", "remove"])
async def test_ids_are_1_to_500_and_those_to_add_must_exist(people: People, store: Store, what: str) -> None:
    (track,), path = make_tracks(store, 1), f"playlists/{await people.ann.playlist()}/tracks/{what}"

    for sent, place in (([], "ids"), ([track] * 501, "ids"), (None, "ids"), ("1", "ids"), ([track, "x"], "ids.1")):
        answer = await people.ann.ask.post(path, {"ids": sent})
        assert (answer.status, list(answer.json["errors"])) == (422, [place])
    assert (await people.ann.ask.post(path, {"ids": [track] * 500})).status == 200
    unknown = await people.ann.ask.post(path, {"ids": [track, UNKNOWN, track, UNKNOWN - 1]})
    assert unknown.status == (200 if what == "remove" else 422)
    assert what == "remove" or list(unknown.json["errors"]) == ["ids.1", "ids.3"]


@pytest.mark.parametrize(("method", "path"), [*READS, *EDITS, *OWNERS])
async def test_anothers_private_playlist_is_not_there(
    people: People, bodies: dict[str, Any], method: str, path: str
) -> None:
    playlist = await people.ann.playlist()

    answer = await people.ben.ask(method, f"playlists/{playlist}{path}", bodies.get(path))
    unknown = await people.ben.ask(method, f"playlists/{UNKNOWN}{path}", bodies.get(path))

    assert (answer.status, answer.body) == (404, unknown.body)


@pytest.mark.parametrize(("method", "path"), [*READS, *EDITS, *OWNERS])
async def test_anothers_public_playlist_can_be_read_and_not_changed(
    people: People, bodies: dict[str, Any], method: str, path: str
) -> None:
    playlist = await people.ann.playlist(public=True)
    before = await people.ann.ask.get(f"playlists/{playlist}")

    answer = await people.ben.ask(method, f"playlists/{playlist}{path}", bodies.get(path))

    assert answer.status == (200 if method == "GET" else 403)
    assert (await people.ann.ask.get(f"playlists/{playlist}")).body == before.body


async def test_the_list_holds_ones_own_and_shared_playlists_newest_first(people: People) -> None:
    own = await people.ann.playlist()
    await people.ben.playlist(public=True)
    shared, invited = await people.ben.playlist(), await people.ben.playlist()
    newest = await people.ann.playlist(name="Last")
    await people.ben.shares(shared, people.ann)
    await people.ben.ask.post(f"playlists/{invited}/invite", {"user_id": people.ann.id})

    assert await people.ann.listed() == [newest, shared, own]
    await people.ben.ask.put(f"playlists/{shared}", {"name": "Mine again"})
    assert await people.ann.listed() == [newest, own]
