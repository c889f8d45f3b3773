"""Access tokens over the API: signing in for a user, creating, listing and deleting tokens."""

import time
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import DAY, MovableClock, isoformat
from musicsvc.config import Access, Limits, Settings
from musicsvc.errors import Conflict
from musicsvc.store import opening
from musicsvc.store.accounts import passwords, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from tests.faults import system
from tests.rights.world import OWNER, PASSWORD, World
from tests.store.engine.test_disk_full import FullDisk
from tests.support.serving import Answer, Client, person, running
from tests.support.shared_server import Shared, on_shared_loop

WRONG = {"email": "The e-mail or the password is wrong."}


def sign_in(world: World, who: str = OWNER, **changes: Any) -> dict[str, Any]:
    return {"email": world.email(who), "password": PASSWORD, "token_name": "my phone"} | changes


def count(shared: Shared, world: World, who: str = OWNER) -> int:
    return len(shared.store.read(lambda: tokens.list(users.get(world.ids[who]))).result())


def owner(shared: Shared, world: World) -> Client:
    return shared.client.holding(world.tokens[OWNER])


async def create(client: Client, **changes: Any) -> Answer:
    return await client.post("access-tokens", {"name": "laptop", "password": PASSWORD} | changes)


@on_shared_loop
async def test_a_client_signs_in_for_its_user_and_gets_a_token_once(shared: Shared) -> None:
    world = shared.world([OWNER])
    answer = await shared.client.post("auth/login", sign_in(world))
    assert (answer.status, answer.json["status"]) == (200, "success")
    user = answer.json["user"]
    assert list(user) == ["id", "display_name", "avatar", "access_token"]
    client = shared.client.holding(user.pop("access_token"))
    assert (await client.get("users/me")).json["user"] == user
    assert user["id"] == world.ids[OWNER]
    newest = (await client.get("access-tokens")).json["pagination"]["data"][0]
    assert (newest["name"], newest["scope"]) == ("my phone", "read-write")
    assert newest["expires_at"] == isoformat(world.now + 90 * DAY)
    wanted = security_events.Filter(token_id=newest["id"])
    (event,) = shared.store.read(lambda: security_events.find(wanted, limit=9)).result()
    assert (event.kind, event.actor, event.account_id) == ("token.created", "api", world.ids[OWNER])


@on_shared_loop
async def test_every_reason_not_to_sign_in_has_the_same_answer(shared: Shared) -> None:
    world = shared.world([OWNER, "suspended"])
    world.do(lambda: users.create(f"unset@{world.domain}", api_access=True, now=world.now))
    wrong = [
        sign_in(world, password=PASSWORD + "s"),
        sign_in(world, password=""),
        sign_in(world, "suspended"),
        sign_in(world, email=f"nobody@{world.domain}"),
        sign_in(world, email=f"unset@{world.domain}"),
        sign_in(world, email="nowhere"),
    ]
    answers = [await shared.client.post("auth/login", body) for body in wrong]
    assert {(answer.status, answer.body) for answer in answers} == {(422, answers[0].body)}
    assert answers[0].json["errors"] == WRONG
    assert (count(shared, world), count(shared, world, "suspended")) == (1, 1)


async def test_without_access_the_right_password_gets_403_and_no_token(store: Store, clock: MovableClock) -> None:
    world = World(store, clock, ["without access"])
    settings = Settings(access=Access(contact_email="api@label.test"))
    async with running(store, clock, settings) as client:
        answer = await client.post("auth/login", sign_in(world, "without access"))
        wrong = await client.post("auth/login", sign_in(world, "without access", password="something else"))
    assert answer.status == 403
    assert answer.json["message"] == "The account has no API access. Ask for it at api@label.test."
    assert (wrong.status, wrong.json["errors"]) == (422, WRONG)
    assert len(store.read(lambda: tokens.list(users.get(world.ids["without access"]))).result()) == 1


async def test_ten_wrong_passwords_lock_out_one_address_for_one_account(store: Store, clock: MovableClock) -> None:
    world = World(store, clock, ["stranger"])
    home = {"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https"}
    away = home | {"X-Forwarded-For": "203.0.113.9"}

    async with running(store, clock, Settings(limits=Limits(address="1000/minute"))) as client:

        async def login(where: dict[str, str], who: str = OWNER, **changes: Any) -> int:
            return (await client.post("auth/login", sign_in(world, who, **changes), headers=where)).status

        assert [await login(home) for _ in range(12)] == [200] * 12
        assert [await login(home, password="wrong word") for _ in range(11)] == [422] * 10 + [429]
        refused = await client.post("auth/login", sign_in(world), headers=home)
        assert (refused.status, int(refused.headers["Retry-After"]) in range(200, 301)) == (429, True)
        assert [await login(away), await login(home, "stranger")] == [200, 200]


@on_shared_loop
async def test_a_created_token_has_its_name_scope_and_lifetime_and_is_shown_once(shared: Shared) -> None:
    world = shared.world([OWNER])
    answer = await create(owner(shared, world), name=" dashboard ", days=30, scope="read")
    assert answer.status == 201
    assert list(answer.json) == ["status", "access_token", "plain_text_token"]
    made, value = answer.json["access_token"], answer.json["plain_text_token"]
    assert made == {"id": made["id"], "name": "dashboard", "expires_at": isoformat(world.now + 30 * DAY)}
    reader = shared.client.holding(value)
    listed = (await reader.get("access-tokens")).json["pagination"]
    assert listed["total"] == 2
    assert listed["data"][0] == made | {
        "last_four": value[-4:],
        "scope": "read",
        "state": "valid",
        "created_at": isoformat(world.now),
        "last_used_at": None,
    }
    assert value not in str(listed)
    refused = await create(reader)
    assert (refused.status, "scope" in refused.json["message"]) == (403, True)
    assert (await reader.delete(f"access-tokens/{made['id']}")).status == 403


@on_shared_loop
async def test_only_the_callers_password_creates_a_token(shared: Shared) -> None:
    world = shared.world([OWNER])
    refused = await create(owner(shared, world), password="wrong word")
    assert (refused.status, refused.json["errors"]) == (422, {"password": "The password is wrong."})
    assert count(shared, world) == 1
    _, value = person(shared.store, shared.clock, f"unset@{world.domain}")  # without a password
    unset = await create(shared.client.holding(value))
    assert (unset.status, unset.json["errors"]) == (422, {"password": "The password is wrong."})


async def test_a_deleted_token_is_refused_by_every_process_on_the_next_request(
    store: Store, clock: MovableClock
) -> None:
    world = World(store, clock, ["stranger"])
    with opening.connect(store.url) as other:
        async with running(store, clock) as here, running(other, clock) as there:
            created = await create(here.holding(world.tokens[OWNER]))
            clients = [each.holding(created.json["plain_text_token"]) for each in (here, there)]
            path = f"access-tokens/{created.json['access_token']['id']}"
            for _ in range(3):
                assert [(await each.get("users/me")).status for each in clients] == [200, 200]
            assert (await here.holding(world.tokens["stranger"]).delete(path)).status == 404
            assert [(await each.get("users/me")).status for each in clients] == [200, 200]
            assert (await here.holding(world.tokens[OWNER]).delete(path)).status == 200
            refused = [await each.get("users/me") for each in clients]
            assert [each.status for each in refused] == [401, 401]
            assert 'error_description="revoked"' in refused[1].headers["WWW-Authenticate"]
            again = await there.holding(world.tokens[OWNER]).delete(path)
            rows = (await there.holding(world.tokens[OWNER]).get("access-tokens")).json["pagination"]["data"]
    assert again.status == 200
    assert [(each["name"], each["state"]) for each in rows] == [("laptop", "revoked"), ("test", "valid")]
    event = store.read(lambda: security_events.find(limit=1)).result()[0]
    assert (event.kind, event.reason, event.actor) == ("token.revoked", "deleted by its owner", "api")


@pytest.mark.on_both
async def test_a_token_that_its_owner_deletes_after_a_revocation_stays_revoked(
    store: Store, clock: MovableClock
) -> None:
    world, now = World(store, clock, []), clock.now()
    async with running(store, clock) as anonymous:
        client = anonymous.holding(world.tokens[OWNER])
        token_id = (await create(client)).json["access_token"]["id"]
        store.write(lambda: tokens.revoke(token_id, "too many requests", now=now)).result()
        assert [(await client.delete(f"access-tokens/{token_id}")).status for _ in range(2)] == [200, 200]
    with pytest.raises(Conflict, match="was deleted by its owner and stays revoked"):
        store.write(lambda: tokens.reinstate(token_id, now=now)).result()
    token = store.read(lambda: tokens.get(token_id)).result()
    assert (token.revoked_at, token.revoked_reason) == (now, "too many requests; deleted by its owner")
    events = store.read(lambda: security_events.find(limit=2)).result()
    assert [event.reason for event in events] == ["too many requests", "deleted by its owner"]
    token.revoked_reason = "laptop deleted by its owner"  # as an operator may write
    assert not tokens.is_deleted(token)


@pytest.mark.only_on("sqlite")
async def test_a_token_can_be_deleted_on_a_full_disk(store: Store, clock: MovableClock) -> None:
    world = World(store, clock, [])
    file = Path(store.url.removeprefix("sqlite:///"))
    async with running(store, clock) as anonymous:
        client = anonymous.holding(world.tokens[OWNER])
        (listed,) = (await client.get("access-tokens")).json["pagination"]["data"]
        store.reserve_space()
        with system.calls(file.parent) as disk:
            disk.fault = FullDisk(file)
            assert (await create(client)).status == 503
            assert (await client.delete(f"access-tokens/{listed['id']}")).status == 200
        assert (await client.get("users/me")).status == 401


@pytest.mark.slow
async def test_a_sign_in_that_fails_costs_the_same_for_every_reason(store: Store, clock: MovableClock) -> None:
    world = World(store, clock, ["suspended"])
    hashed = passwords.hash_password(PASSWORD)
    for who in (OWNER, "suspended"):
        world.do(lambda who=who: users.set_password(users.get(world.ids[who]), hashed, now=1))  # type: ignore[misc]  # bound in the loop
    world.do(lambda: users.create(f"unset@{world.domain}", now=world.now))
    emails = [world.email(OWNER), world.email("suspended"), f"unset@{world.domain}", f"nobody@{world.domain}"]
    costs: dict[str, list[float]] = {email: [] for email in emails}  # CPU seconds of the client and the server
    async with running(store, clock) as client:
        for email in emails * 5:
            began = time.process_time()
            answer = await client.post("auth/login", sign_in(world, email=email, password="wrong words"))
            costs[email].append(time.process_time() - began)
            assert answer.status == 422
    least = [min(found) for found in costs.values()]
    assert max(least) < 4 * min(least), costs  # verifying a password costs ten times as much as the rest
