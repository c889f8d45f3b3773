"""Public accounts: search, follows, the caller's own account."""

import asyncio
from uuid import uuid4

from musicsvc.store.accounts import users
from tests.support.people import People
from tests.support.serving import Answer
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop


def _make(shared: Shared, *names: str) -> None:
    emails = [f"{uuid4()}@fans.test" for _ in names]
    pairs = list(zip(emails, names, strict=True))
    now = shared.clock.now()
    shared.store.write(lambda: [users.create(email, display_name=name, now=now) for email, name in pairs]).result()


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


async def test_a_search_answers_summaries_the_best_match_first(people: People, shared: Shared) -> None:
    _make(shared, "Isidora", "Dora Zoë", "Dor", "Ben Dorn", *["Fan"] * 60)
    ask = people.ann.ask
    answer = await ask.get("users/search?query=DOR")
    assert _names(answer) == ["Dor", "Dora Zoë", "Ben Dorn", "Isidora"]
    assert [list(row) for row in answer.json["users"]] == [["id", "display_name", "avatar"]] * 4
    assert list(answer.json) == ["status", "users"]
    assert b"@" not in answer.body
    assert _names(await ask.get("users/search?q=zo%C3%AB")) == ["Dora Zoë"]
    assert _names(await ask.get("users/search?query=%20dor%20&limit=2")) == ["Dor", "Dora Zoë"]
    assert [len(_names(await ask.get(f"users/search?q=fan{more}"))) for more in ("", "&limit=50&other=1")] == [10, 50]
    for query in ("query=%25", "query=nobody", "q=" + "%F0%9F%8E%B9" * 100):
        assert _names(await ask.get(f"users/search?{query}")) == []


FAULTY = {
    "query": ("", "query=", "query=%20%09", "query=a&query=a", "q=a&query=b", "query=a%00b", "query=" + "a" * 101),
    "q": ("q=%20", "q=a&q=b", "query=a&q=b"),
    "limit": tuple(f"query=a&limit={text}" for text in ("0", "51", "", "1.0", "01", "%2B1", "2&limit=2")),
}


async def test_a_search_that_breaks_a_rule_is_told_which(people: People) -> None:
    for name, queries in FAULTY.items():
        for query in queries:
            answer = await people.ann.ask.get(f"users/search?{query}")
            assert (answer.status, list(answer.json["errors"])) == (422, [name]), query
    answer = await people.ann.ask.get("users/search?limit=99")
    assert sorted(answer.json["errors"]) == ["limit", "query"]


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


async def test_nobody_follows_themselves(people: People) -> None:
    ann = people.ann
    refused = await ann.ask.post(f"users/{ann.id}/follow")
    assert (refused.status, refused.json["message"], refused.json["errors"]) == (422, "You cannot follow yourself.", {})
    assert (await ann.ask.post(f"users/{ann.id}/unfollow")).status == 200


async def test_of_many_follows_at_once_one_is_kept(people: People) -> None:
    asked = [people.ben.ask.post(f"users/{people.ann.id}/follow") for _ in range(16)]
    assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
    assert _names(await people.ann.ask.get("users/me/followers")) == ["ben"]
