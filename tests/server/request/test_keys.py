"""Requests with an `Idempotency-Key`: what is answered again, and what is not."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import pytest

from musicsvc.clock import DAY
from musicsvc.server.routes.route import V1, Family, Route
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.accounts import api_access, kept_answers, tokens, users
from musicsvc.store.accounts.kept_answers import Keyed
from musicsvc.store.models import (
    AccessRequest,
    Album,
    Artist,
    Collection,
    Comment,
    Conversation,
    KeptAnswer,
    Message,
    Play,
    Playlist,
    Track,
    User,
)
from musicsvc.store.people import deletion
from tests.rights.table import BODIES, RIGHTS, endpoint, key, path_of
from tests.rights.world import OWNER, READER, World
from tests.support.people import make_tracks
from tests.support.response_checks import CheckedClient
from tests.support.serving import Answer, Client, person
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = on_shared_loop
MADE: Mapping[str, Any] = {  # by the endpoints of the contract, what their requests make
    f"POST {V1}/albums": Album,
    f"POST {V1}/tracks": Track,
    f"POST {V1}/artists": Artist,
    f"POST {V1}/playlists": Playlist,
    f"POST {V1}/collections": Collection,
    f"POST {V1}/messaging/messages": Message,
    f"POST {V1}/messaging/conversations": Conversation,
    f"POST {V1}/tracks/{{id}}/comments": Comment,
    f"POST {V1}/plays": Play,
    f"POST {V1}/access-requests": AccessRequest,
}
KEYED = [route for route in ROUTES if route.keyed and route.family is not Family.PAGE]
REPLAYED = "Idempotency-Replayed"


class Asked(NamedTuple):
    """A request that can be sent, and a client that may send it."""

    client: Client
    path: str
    body: Any


def prepare(shared: Shared, route: Route) -> Asked:
    who = "without access" if route.path.endswith("access-requests") else OWNER
    world: World = shared.world((who,))
    right = RIGHTS[key(route)][""]
    subject = world.do(lambda: right.make(world, who))
    if endpoint(route) == f"POST {V1}/plays":
        subject = make_tracks(shared.store, 1)[0]
    body = BODIES[endpoint(route)](world, who, subject)
    if endpoint(route) == f"POST {V1}/plays":
        body["plays"][0]["track_id"] = subject
    client = CheckedClient(shared.client.session, shared.client.root, world.tokens[who])
    return Asked(client, path_of(route, subject), body)


def count(shared: Shared, model: Any) -> int:
    return int(shared.store.read(lambda: model.select().count()).result())


def with_key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


def playlists(shared: Shared, name: str) -> int:
    return int(shared.store.read(lambda: Playlist.select().where(Playlist.name == name).count()).result())


async def create(client: Client, name: str, key: str = "k", **headers: str) -> Answer:
    """Create a playlist. No two tests have the same name."""
    return await client.post("playlists", {"name": name}, headers={**with_key(key), **headers})


def is_replayed(answer: Answer) -> bool:
    return answer.headers.get(REPLAYED) == "true"


@pytest.fixture
def client(member: Client) -> Client:
    return CheckedClient(member.session, member.root, member.token)


async def test_the_endpoints_that_keep_answers_are_those_of_the_contract() -> None:
    assert {endpoint(route) for route in KEYED} == {*MADE}


@pytest.mark.on_both
@pytest.mark.parametrize("route", KEYED, ids=endpoint)
async def test_a_repeated_request_is_not_executed_again(shared: Shared, route: Route) -> None:
    asked, model = prepare(shared, route), MADE[endpoint(route)]
    before = count(shared, model)

    first = await asked.client.post(asked.path, asked.body, headers=with_key('"k"'))
    again = await asked.client.post(asked.path, asked.body, headers=with_key("k"))

    assert (first.status, REPLAYED in first.headers) == (route.status, False)
    assert (again.status, again.headers[REPLAYED], again.body) == (route.status, "true", first.body)
    assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert count(shared, model) == before + 1


@pytest.mark.parametrize("given", ["k" * 64, '"' + "k" * 64 + '"', "!~", '"!~"', '"', 'k"', " k\t"])
async def test_a_key_has_1_to_64_visible_ascii_characters(shared: Shared, client: Client, given: str) -> None:
    answers = [await create(client, f"visible {given}", given) for _ in range(2)]

    assert [is_replayed(each) for each in answers] == [False, True]
    assert playlists(shared, f"visible {given}".strip()) == 1


@pytest.mark.parametrize("given", ["", '""', "k" * 65, '"' + "k" * 65 + '"', "a b", "a\tb", "clé", '"a b"'])
async def test_another_key_is_an_error_beside_those_of_the_body(shared: Shared, client: Client, given: str) -> None:
    before = count(shared, Playlist)
    refused = await client.post("playlists", {"name": ""}, headers=with_key(given))
    assert (refused.status, set(refused.json["errors"])) == (422, {"Idempotency-Key", "name"})
    assert (await create(client, "x", given)).status == 422
    assert count(shared, Playlist) == before


async def test_two_keys_are_an_error(client: Client) -> None:
    sent = [("Idempotency-Key", "a"), ("Idempotency-Key", "a"), ("Authorization", f"Bearer {client.token}")]
    async with client.session.post(f"{client.root}{V1}/playlists", json={"name": "x"}, headers=sent) as answer:
        assert (answer.status, set((await answer.json())["errors"])) == (422, {"Idempotency-Key"})


async def test_a_key_belongs_to_one_path_and_the_bytes_of_one_body(shared: Shared, client: Client) -> None:
    (track, other) = make_tracks(shared.store, 2)
    headers = {**with_key("k"), "Content-Type": "application/json"}
    first = await client.post(f"tracks/{track}/comments", data=b'{"content": "Bytes"}', headers=headers)
    for path, data in (
        (f"tracks/{track}/comments", b'{"content":"Bytes"}'),
        (f"tracks/{track}/comments", b'{"content": "Bytes" }'),
        (f"tracks/{other}/comments", b'{"content": "Bytes"}'),
        ("collections", b'{"name": "Bytes"}'),
    ):
        refused = await client.post(path, data=data, headers=headers)
        assert (refused.status, set(refused.json["errors"])) == (422, {"Idempotency-Key"}), (path, data)
        assert f"{V1}/tracks/{track}/comments" in refused.json["errors"]["Idempotency-Key"]
    again = await client.post(f"tracks/{track}/comments", data=b'{"content": "Bytes"}', headers=headers)
    assert (is_replayed(again), again.body) == (True, first.body)
    assert shared.store.read(lambda: Comment.select().where(Comment.content == "Bytes").count()).result() == 1


async def test_an_answer_is_kept_for_24_hours(shared: Shared, client: Client) -> None:
    first = await create(client, "a day")
    shared.clock.advance(DAY - 1)
    assert (await create(client, "a day")).body == first.body
    shared.clock.advance(1)
    later = await create(client, "a day")
    assert (is_replayed(later), later.json["playlist"]["id"] > first.json["playlist"]["id"]) == (False, True)
    assert (await create(client, "a day")).body == later.body
    assert playlists(shared, "a day") == 2


async def test_a_key_belongs_to_an_account_not_to_a_token(shared: Shared) -> None:
    owner, token = person(shared.store, shared.clock, "keys.owner@label.test")
    _, other = person(shared.store, shared.clock, "keys.other@label.test")
    make = lambda: tokens.create(users.get(owner), "second", now=shared.clock.now())[1]  # noqa: E731 - a unit
    second = shared.store.write(make).result()
    first, again, foreign = [await create(shared.client.holding(each), "ours") for each in (token, second, other)]
    assert [is_replayed(each) for each in (first, again, foreign)] == [False, True, False]
    assert again.body == first.body
    assert foreign.json["playlist"]["owner"] != first.json["playlist"]["owner"]


async def test_refusals_are_not_kept(shared: Shared, client: Client) -> None:
    for body, status in (({"name": ""}, 422), ({"name": "later"}, 200)):
        assert (await client.post("playlists", body, headers=with_key("k"))).status == status
    talk = {"conversation_id": 2**40, "message_text": "Hello"}
    for _ in range(2):
        answer = await client.post("messaging/messages", talk, headers=with_key("m"))
        assert (answer.status, is_replayed(answer)) == (404, False)
    assert playlists(shared, "later") == 1


async def test_whoever_may_not_send_it_any_more_gets_no_answer_again(shared: Shared) -> None:
    world = shared.world((READER,))
    client, store, now = shared.client.holding(world.tokens[OWNER]), shared.store, shared.clock.now()
    first = await create(client, "rights")
    for change, status in (
        (api_access.revoke, 403),
        (api_access.grant, 200),
        (users.suspend, 403),
        (users.reinstate, 200),
    ):
        user = store.read(partial(users.get, world.ids[OWNER])).result()
        store.write(partial(change, user, now=now)).result()
        assert (await create(client, "rights")).status == status
    assert (await create(shared.client.holding(None), "rights")).status == 401
    assert (await create(shared.client.holding(world.tokens[READER]), "rights")).status == 403
    assert (await create(client, "rights")).body == first.body


async def test_the_answer_stays_when_what_it_names_is_gone(shared: Shared, client: Client) -> None:
    (track,) = make_tracks(shared.store, 1)
    sent = partial(client.post, f"tracks/{track}/comments", {"content": "Gone"}, headers=with_key("k"))
    first = await sent()
    shared.store.write(lambda: Track.delete().where(Track.id == track).execute()).result()
    again = await sent()
    assert (again.status, is_replayed(again), again.body) == (201, True, first.body)
    fresh = await client.post(f"tracks/{track}/comments", {"content": "Gone"}, headers=with_key("new"))
    assert fresh.status == 404


async def test_a_larger_answer_than_64_kib_is_not_kept(shared: Shared, client: Client) -> None:
    ids = make_tracks(shared.store, 8)
    long = Track.update(description="♪" * 3_000).where(Track.id.in_(ids))
    shared.store.write(long.execute).result()
    for number, kept in ((7, True), (8, False)):
        body = {"name": f"{number} tracks", "track_ids": ids[:number]}
        first, again = [await client.post("collections", body, headers=with_key(f"k{number}")) for _ in range(2)]
        assert (len(first.body) <= kept_answers.MOST_BYTES) is kept
        assert is_replayed(again) is kept
        assert (again.body == first.body) is kept


@pytest.mark.parametrize("given", ["k", "a b"])
async def test_elsewhere_the_header_is_ignored(shared: Shared, client: Client, given: str) -> None:
    before, (track,) = count(shared, KeptAnswer), make_tracks(shared.store, 1)
    made = (await client.post("playlists", {"name": "elsewhere"})).json["playlist"]["id"]
    account = {"email": f"{track}@keys.test", "password": "three romances", "token_name": "mine"}
    answers = [
        await client(method, path, body, headers=with_key(given))
        for _ in range(2)
        for method, path, body in (
            ("POST", f"playlists/{made}/tracks/add", {"ids": [track]}),
            ("PUT", "playlists", {"name": "elsewhere"}),
            ("POST", f"tracks/{track}/like", None),
            ("GET", "playlists", None),
        )
    ]
    registered = await client.post("auth/register", account, headers=with_key(given))
    twice = await client.post("auth/register", account, headers=with_key(given))
    assert {each.status for each in answers} == {200}
    assert not any(map(is_replayed, (*answers, registered, twice)))
    assert (registered.status, twice.status) == (200, 422)
    assert (await client.get(f"playlists/{made}")).json["playlist"]["tracks_count"] == 2
    assert count(shared, KeptAnswer) == before


@pytest.mark.on_both
async def test_requests_at_once_with_the_same_key_have_one_effect(shared: Shared, client: Client) -> None:
    answers = await asyncio.gather(*(create(client, f"at once {n % 3}", f"k{n % 3}") for n in range(24)))
    assert {each.status for each in answers} == {200}
    assert sum(map(is_replayed, answers)) == 21
    assert len({each.body for each in answers}) == 3
    assert [playlists(shared, f"at once {n}") for n in range(3)] == [1, 1, 1]


async def test_unknown_fields_are_named_again_and_plays_are_counted_once(shared: Shared, client: Client) -> None:
    (track,) = make_tracks(shared.store, 1)
    play = {"track_id": track, "played_at": shared.clock.now() // 1_000_000, "tempo": 3}
    body = {"plays": [play], "mood": "blue"}
    for replayed in (False, True):
        answer = await client.post("plays", body, headers=with_key("k"))
        assert (answer.headers["X-Ignored"], is_replayed(answer)) == ("body.mood", replayed)
        assert answer.json["accepted"] == 1
    strict = await client.post("plays", body, headers={**with_key("s"), "Prefer": "handling=strict"})
    assert (strict.status, set(strict.json["errors"])) == (422, {"mood"})
    shown = await client.get(f"tracks/{track}")
    assert shown.json["track"]["plays"] == 1


async def test_a_deleted_account_takes_its_name_out_of_the_answers_to_others(shared: Shared, client: Client) -> None:
    gone, _ = person(shared.store, shared.clock, "keys.gone@label.test")
    stays, _ = person(shared.store, shared.clock, "keys.stays@label.test")
    sent = {who: partial(client.post, "messaging/conversations", {"user_ids": [who]}) for who in (gone, stays)}
    first = {who: await send(headers=with_key(f"k{who}")) for who, send in sent.items()}
    shared.store.write(partial(deletion.delete, gone, now=shared.clock.now())).result()
    assert (await sent[stays](headers=with_key(f"k{stays}"))).body == first[stays].body
    assert (await sent[gone](headers=with_key(f"k{gone}"))).status == 422
    kept = shared.store.read(lambda: [bytes(row.answer) for row in KeptAnswer.select()]).result()
    assert not [each for each in kept if b"keys.gone" in each]
    assert shared.store.read(lambda: User.select().where(User.id == stays).count()).result() == 1


async def test_no_hash_of_a_report_stays_when_a_listener_is_erased(shared: Shared) -> None:
    account, token = person(shared.store, shared.clock, "keys.reports@label.test")
    grant = partial(api_access.grant, plays=True, now=shared.clock.now())
    shared.store.write(lambda: grant(users.get(account))).result()
    client = shared.client.holding(token)
    (track,) = make_tracks(shared.store, 1)
    play = {"track_id": track, "played_at": shared.clock.now() // 1_000_000, "listener": "keys-fan"}
    for path, body in (("plays", {"plays": [play]}), ("playlists", {"name": "Stays"})):
        assert (await client.post(path, body, headers=with_key(f"erase-{path}"))).status < 300
    shared.store.write(partial(deletion.erase_listener, "keys-fan", now=shared.clock.now())).result()
    kept = shared.store.read(lambda: {row.path for row in KeptAnswer.select()}).result()
    assert f"{V1}/playlists" in kept
    assert f"{V1}/plays" not in kept


@contextmanager
def running_first(shared: Shared, asked: Keyed) -> Iterator[threading.Event]:
    """Run the first request with a key, until the event is set; its answer is `{"first": 1}`."""
    begun, may_end = threading.Event(), threading.Event()

    def unit() -> None:
        begun.set()
        assert may_end.wait(60)

    encode = lambda _: b'{"first":1}'  # noqa: E731 - as short as its neighbours
    done = shared.store.write(partial(kept_answers.once, asked, unit, encode, now=shared.clock.now()))
    assert begun.wait(60)
    try:
        yield may_end
    finally:
        may_end.set()
        done.result()


def first_of(shared: Shared, email: str) -> tuple[Client, Keyed]:
    account, token = person(shared.store, shared.clock, email)
    body = b'{"name": "waits"}'
    return shared.client.holding(token), Keyed(account, "k", f"{V1}/playlists", sha256(body).digest())


@pytest.mark.on_both
async def test_a_request_waits_for_the_first_with_its_key_and_holds_up_no_other(shared: Shared) -> None:
    """On PostgreSQL; on SQLite all writes wait for the one that runs."""
    client, asked = first_of(shared, "keys.waits@label.test")
    with running_first(shared, asked) as may_end:
        second = asyncio.ensure_future(create(client, "waits"))
        reads = [(await client.get("playlists")).status for _ in range(3)]
        if shared.store.parallel_reads > 1:
            reads += [each.status for each in await asyncio.gather(*(create(client, "o", name) for name in "abc"))]
        waits = not second.done()
        may_end.set()
        answer = await second
    assert (waits, {*reads}) == (True, {200})
    assert (answer.status, is_replayed(answer), answer.body) == (200, True, b'{"first":1}')


@pytest.mark.slow
@pytest.mark.only_on("postgres")
async def test_a_request_that_has_waited_for_5_seconds_is_told_to_come_again(shared: Shared) -> None:
    client, asked = first_of(shared, "keys.waits.long@label.test")
    began = asyncio.get_running_loop().time()
    with running_first(shared, asked):
        answer = await create(client, "waits")
    assert (answer.status, answer.headers["Retry-After"]) == (409, "1")
    assert asyncio.get_running_loop().time() - began >= 5
    assert (await create(client, "waits")).body == b'{"first":1}'
