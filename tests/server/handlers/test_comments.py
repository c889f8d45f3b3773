"""Comments: validation, thread order, deletion."""

from typing import Any

import pytest

from musicsvc.store.accounts import users
from musicsvc.store.models import Artist, TrackArtist
from tests.support.people import People, Person, make_tracks
from tests.support.serving import Answer
from tests.support.shared_server import Shared, on_shared_loop

UNKNOWN = 2**53 - 1
pytestmark = on_shared_loop


@pytest.fixture
def track(shared: Shared) -> int:
    return make_tracks(shared.store, 1)[0]


async def _say(who: Person, track: int, content: str, **more: Any) -> int:
    answer = await who.ask.post(f"tracks/{track}/comments", {"content": content} | more)
    assert answer.status == 201, answer.body
    return int(answer.json["comment"]["id"])


async def _thread(who: Person, track: int) -> list[str]:
    """Return the comments in order, indented by depth."""
    answer = await who.ask.get(f"tracks/{track}/comments?perPage=100")
    rows = answer.json["pagination"]["data"]
    assert answer.json["pagination"]["total"] == len(rows)
    return ["-" * row["depth"] + (row["content"] or "deleted") for row in rows]


async def test_a_comment_comes_back_as_it_was_sent(people: People, track: int) -> None:
    sent = {"content": " That bridge! 🎹 ", "position": 40, "deleted": True, "id": 7, "depth": 3}
    answer = await people.ann.ask.post(f"tracks/{track}/comments", sent)
    assert answer.status == 201
    comment = answer.json["comment"]
    assert list(comment) == ["id", "content", "position", "depth", "deleted", "user"]
    assert comment | {"content": "That bridge! 🎹", "position": 40, "depth": 0, "deleted": False} == comment
    assert comment["user"]["id"] == people.ann.id
    assert comment["id"] != 7
    assert (await people.ben.ask.get(f"tracks/{track}/comments")).json["pagination"]["data"] == [comment]


async def test_a_comment_without_a_position_stands_at_the_start_and_a_reply_where_its_parent_does(
    people: People, track: int
) -> None:
    async def position(**more: Any) -> tuple[int, int]:
        answer = await people.ann.ask.post(f"tracks/{track}/comments", {"content": "x"} | more)
        return answer.json["comment"]["position"], answer.json["comment"]["depth"]

    parent = await _say(people.ann, track, "parent", position=60)
    assert await position() == (0, 0)
    assert await position(position=None, parent_id=None) == (0, 0)
    assert await position(parent_id=parent) == (60, 1)
    assert await position(parent_id=parent, position=75) == (75, 1)


async def test_a_reply_goes_to_a_comment_on_the_same_track_that_is_not_deleted(
    people: People, shared: Shared, track: int
) -> None:
    other = make_tracks(shared.store, 1)[0]
    parent = await _say(people.ann, other, "elsewhere")
    for content, faulty in (("x", ["parent_id"]), ("", ["content", "parent_id"])):
        answer = await people.ann.ask.post(f"tracks/{track}/comments", {"content": content, "parent_id": parent})
        assert (answer.status, sorted(answer.json["errors"])) == (422, faulty)
        assert answer.json["errors"]["parent_id"] == "That comment is on another track."

    await _say(people.ben, other, "reply", parent_id=parent)
    await people.ann.ask.delete(f"comments/{parent}")
    answer = await people.ann.ask.post(f"tracks/{other}/comments", {"content": "x", "parent_id": parent})
    assert (answer.status, answer.json["errors"]) == (422, {"parent_id": "That comment was deleted."})


async def test_a_thread_reads_roots_by_position_then_time_and_replies_under_their_parent(
    people: People, track: int
) -> None:
    ann, ben, _ = people
    late = await _say(ann, track, "late", position=90)
    early = await _say(ben, track, "early", position=10)
    await _say(ann, track, "late too", position=90)
    first = await _say(ann, track, "one", parent_id=early)
    await _say(ann, track, "two", parent_id=early)
    await _say(ben, track, "one of one", parent_id=first)
    await _say(ben, track, "of late", parent_id=late, position=0)
    await _say(ben, track, "early too", position=10)
    await _say(ben, track, "first", position=0)
    assert await _thread(ann, track) == [
        "first",
        "early",
        "-one",
        "--one of one",
        "-two",
        "early too",
        "late",
        "-of late",
        "late too",
    ]


async def test_a_deleted_comment_is_gone_or_while_it_has_replies_keeps_its_place_without_its_text(
    people: People, track: int
) -> None:
    ann, ben, _ = people
    root = await _say(ann, track, "root")
    reply = await _say(ben, track, "reply", parent_id=root)
    deep = await _say(ann, track, "deep", parent_id=reply)
    await _say(ben, track, "other")

    async def delete(who: Person, comment: int) -> Answer:
        return await who.ask.delete(f"comments/{comment}")

    for who, comment in ((ann, root), (ben, reply), (ann, root)):
        answer = await delete(who, comment)
        assert (answer.status, answer.json) == (200, {"status": "success"})
    assert await _thread(ann, track) == ["deleted", "-deleted", "--deep", "other"]
    row = (await ann.ask.get(f"tracks/{track}/comments")).json["pagination"]["data"][0]
    assert (row["id"], row["deleted"], row["content"], row["user"]["id"]) == (root, True, "", ann.id)

    assert (await delete(ann, deep)).status == 200
    assert await _thread(ann, track) == ["other"]
    for comment in (root, reply, deep, UNKNOWN):
        assert (await delete(ann, comment)).status == 404


async def test_who_manages_an_artist_of_a_track_deletes_its_comments_and_no_others(
    people: People, shared: Shared, track: int
) -> None:
    ann, ben, _ = people

    def manage() -> None:
        for person in (None, ben):
            artist = Artist.create(name="Duo", manager=person and person.id, created_at=0)
            TrackArtist.create(track=track, artist=artist.id, position=artist.id)

    shared.store.write(manage).result()
    for on, status in ((track, 200), (make_tracks(shared.store, 1)[0], 403)):
        comment = await _say(ann, on, "x")
        assert (await ben.ask.delete(f"comments/{comment}")).status == status


async def test_comments_of_a_suspended_account_stay(people: People, shared: Shared, track: int) -> None:
    await _say(people.ann, track, "still here")
    shared.store.write(lambda: users.suspend(users.get(people.ann.id), now=0)).result()
    assert await _thread(people.ben, track) == ["still here"]
