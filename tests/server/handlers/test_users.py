"""Public accounts: search, follows, the caller's own account."""

import asyncio

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from tests.support.playlist_world import People
from tests.support.playlist_world import people as new_people
from tests.support.serving import Answer, Client

UNKNOWN = 2**53 - 1


@pytest.fixture
def people(anonymous: Client, store: Store, clock: MovableClock) -> People:
    return new_people(anonymous, store, clock)


def _make(store: Store, clock: MovableClock, *names: str) -> list[int]:
    def unit() -> list[int]:
        return [
            users.create(f"{number}@fans.test", display_name=name, now=clock.now()).id
            for number, name in enumerate(names)
        ]

    return store.write(unit).result()


def _names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    found = answer.json
    rows = found["users"] if "users" in found else found["pagination"]["data"]
    return [row["display_name"] for row in rows]


async def test_the_caller_reads_its_own_summary_and_nothing_more(people: People) -> None:
    answer = await people.ben.ask.get("users/me")
    avatar = answer.json["user"]["avatar"]
    assert answer.json == {
        "status": "success",
        "user": {"id": people.ben.id, "display_name": "ben", "avatar": avatar},
    }
    assert avatar.startswith("http")


async def test_a_search_answers_summaries_the_best_match_first(
    people: People, store: Store, clock: MovableClock
) -> None:
    _make(store, clock, "Joanna", "Anna Zoë", "Ann", "Ben Annis", "Zoe")
    answer = await people.ann.ask.get("users/search?query=ANN")
    assert _names(answer) == ["ann", "Ann", "Anna Zoë", "Ben Annis", "Joanna"]
    assert [list(row) for row in answer.json["users"]] == [["id", "display_name", "avatar"]] * 5
    assert list(answer.json) == ["status", "users"]
    assert b"@" not in answer.body
    assert _names(await people.ann.ask.get("users/search?q=zo%C3%AB")) == ["Zoe", "Anna Zoë"]
    assert _names(await people.ann.ask.get("users/search?query=a&limit=2")) == ["ann", "Ann"]


async def test_a_search_finds_ten_unless_told_otherwise(people: People, store: Store, clock: MovableClock) -> None:
    _make(store, clock, *["Fan"] * 60)
    found = [len(_names(await people.ann.ask.get(f"users/search?query=fan{more}"))) for more in ("", "&limit=50")]
    assert found == [10, 50]


@pytest.mark.parametrize("query", ["query=%25", "query=_", "query=%2A", "query=a%25n", "query=nobody", "q=%CC%81"])
async def test_a_search_without_a_match_finds_nobody(people: People, query: str) -> None:
    assert _names(await people.ann.ask.get(f"users/search?{query}")) == []


@pytest.mark.parametrize(
    ("query", "faulty"),
    [
        ("", ["query"]),
        ("query=", ["query"]),
        ("query=%20%09", ["query"]),
        ("q=%20", ["q"]),
        ("query=a&query=a", ["query"]),
        ("q=a&q=b", ["q"]),
        ("query=a&q=b", ["q"]),
        ("q=a&query=b", ["query"]),
        ("query=a%00b", ["query"]),
        ("query=" + "a" * 101, ["query"]),
        ("query=a&limit=0", ["limit"]),
        ("query=a&limit=51", ["limit"]),
        ("query=a&limit=", ["limit"]),
        ("query=a&limit=1.0", ["limit"]),
        ("query=a&limit=01", ["limit"]),
        ("query=a&limit=%2B1", ["limit"]),
        ("query=a&limit=2&limit=2", ["limit"]),
        ("limit=99", ["limit", "query"]),
    ],
)
async def test_a_search_that_breaks_a_rule_is_told_which(people: People, query: str, faulty: list[str]) -> None:
    answer = await people.ann.ask.get(f"users/search?{query}")
    assert answer.status == 422
    assert sorted(answer.json["errors"]) == faulty


@pytest.mark.parametrize("query", ["q=" + "%F0%9F%8E%B9" * 100, "query=%20a%20", "query=a&limit=50&other=1&other=2"])
async def test_a_search_within_the_rules_is_answered(people: People, query: str) -> None:
    assert (await people.ann.ask.get(f"users/search?{query}")).status == 200


async def test_who_follows_is_listed_on_both_sides_the_newest_follow_first(people: People) -> None:
    ann, ben, cleo = people
    for fan, star in ((ben, ann), (cleo, ann), (cleo, ben)):
        answer = await fan.ask.post(f"users/{star.id}/follow")
        assert (answer.status, answer.json) == (200, {"status": "success"})
    assert _names(await ann.ask.get("users/me/followers")) == ["cleo", "ben"]
    assert _names(await ann.ask.get("users/me/followed-users")) == []
    assert _names(await cleo.ask.get("users/me/followed-users")) == ["ben", "ann"]

    await ben.ask.post(f"users/{ann.id}/follow")
    assert _names(await ann.ask.get("users/me/followers")) == ["cleo", "ben"]
    for _ in range(2):
        answer = await ben.ask.post(f"users/{ann.id}/unfollow")
        assert (answer.status, answer.json) == (200, {"status": "success"})
    assert _names(await ann.ask.get("users/me/followers")) == ["cleo"]
    await ben.ask.post(f"users/{ann.id}/follow")
    assert _names(await ann.ask.get("users/me/followers")) == ["ben", "cleo"]


async def test_nobody_follows_a_stranger_to_the_service_or_themselves(people: People) -> None:
    ann = people.ann
    for action in ("follow", "unfollow"):
        for user_id in (UNKNOWN, "me", "0", "01"):
            assert (await ann.ask.post(f"users/{user_id}/{action}")).status == 404
    refused = await ann.ask.post(f"users/{ann.id}/follow")
    assert (refused.status, refused.json["message"], refused.json["errors"]) == (422, "You cannot follow yourself.", {})
    assert (await ann.ask.post(f"users/{ann.id}/unfollow")).status == 200


async def test_of_many_follows_at_once_one_is_kept(people: People) -> None:
    asked = [people.ben.ask.post(f"users/{people.ann.id}/follow") for _ in range(16)]
    assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
    assert _names(await people.ann.ask.get("users/me/followers")) == ["ben"]
