"""A deleted account is refused by every server from the next request on, and in the middle of a request."""

import asyncio
import threading
from functools import partial

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track, TrackLike
from musicsvc.store.people import deletion
from musicsvc.store.security import sessions
from tests.support.serving import StartServer, person
from tests.support.waiting import until

pytestmark = pytest.mark.only_on("sqlite")  # PostgreSQL: test_revocation_nodes.py, and tests/store/people
UNKNOWN = 'Bearer error="invalid_token", error_description="unknown"'


async def test_every_server_refuses_the_token_and_the_session_of_a_deleted_account(
    start_server: StartServer, store: Store, clock: MovableClock
) -> None:
    user, token = person(store, clock, "ann@label.test")

    def sign_in() -> str:
        return sessions.create(users.get(user), address="127.0.0.1", agent="Tests/1.0", now=clock.now())

    cookie = {"Cookie": f"musicsvc={store.write(sign_in).result()}", "Accept": "text/html"}
    with opening.connect(store.url) as other, opening.connect(store.url) as command_line:
        clients = [(await start_server(store=each)).holding(token) for each in (store, other)]
        for client in clients:
            assert (await client.get("users/me")).status == 200
            assert (await client.get("/settings", headers=cookie)).status == 200
        command_line.write(partial(deletion.delete, user, now=clock.now())).result()
        for client in clients:
            refused = await client.get("users/me")
            assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, UNKNOWN)
            page = await client.get("/settings", headers=cookie)
            assert (page.status, page.headers["Location"]) == (303, "/sign-in?next=/settings")


async def test_a_request_whose_account_is_deleted_before_it_is_written_is_refused(
    start_server: StartServer, store: Store, clock: MovableClock
) -> None:
    user, token = person(store, clock, "ann@label.test")
    track = store.write(lambda: int(Track.create(name="Rag", duration=1, created_at=1).id)).result()
    client = (await start_server()).holding(token)
    assert (await client.get("users/me")).status == 200
    begun, may_go_on = threading.Event(), threading.Event()

    def delete() -> None:
        begun.set()
        assert may_go_on.wait(30)
        deletion.delete(user, now=clock.now())

    deleted = store.write(delete)
    await until(begun.is_set)
    liked = asyncio.create_task(client.post(f"tracks/{track}/like"))
    await until(lambda: store.waiting()[1])
    may_go_on.set()
    deleted.result()
    refused = await liked
    assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, UNKNOWN)
    assert store.read(lambda: TrackLike.select().count()).result() == 0
