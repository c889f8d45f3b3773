"""API access: grants, revocations, requests and decisions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from musicsvc.clock import Clock
from musicsvc.errors import Conflict, Invalid, NotFound
from musicsvc.store.accounts import api_access, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import AccessRequest
from tests.support.postgres_locks import require_wait

EMAIL = "ada@example.test"


def ask(store: Store, email: str = EMAIL, now: int = 1) -> AccessRequest:
    return store.write(lambda: api_access.request(email, "A player", "100 a day", "Engines Ltd", now=now)).result()


def rights(store: Store, email: str = EMAIL) -> tuple[bool, bool]:
    user = store.read(lambda: users.by_email(email)).result()
    return user.api_access, user.reports_plays


def test_granting_adds_and_revoking_takes_all(store: Store, clock: Clock) -> None:
    store.write(lambda: users.create(EMAIL, now=clock.now())).result()
    store.write(lambda: api_access.grant(users.by_email(EMAIL), plays=True, now=1)).result()
    assert rights(store) == (True, True)
    store.write(lambda: api_access.grant(users.by_email(EMAIL), now=1)).result()
    assert rights(store) == (True, True)
    store.write(lambda: api_access.revoke(users.by_email(EMAIL), now=1)).result()
    assert rights(store) == (False, False)


def test_a_request_that_is_decided_names_the_remedy_unless_there_is_access(store: Store) -> None:
    def conflict(action: Callable[..., object], *arguments: object) -> str:
        with pytest.raises(Conflict) as refusal:
            store.write(partial(action, *arguments, now=9)).result()
        return refusal.value.message

    denied = ask(store).id
    store.write(lambda: api_access.deny(denied, "why", now=2)).result()
    assert conflict(api_access.approve, denied).endswith("is denied already. A new request can be approved.")
    user = store.write(lambda: users.create(EMAIL, now=2)).result()
    remedy = f"To give the account access, run: musicsvc access grant {EMAIL}"
    assert conflict(api_access.approve, denied).endswith(f"is denied already. {remedy}")
    approved = ask(store, now=3).id
    store.write(lambda: api_access.approve(approved, now=4)).result()
    already = "is approved already."
    assert conflict(api_access.approve, approved).endswith(already)
    store.write(lambda: api_access.revoke(user, now=5)).result()
    assert conflict(api_access.approve, approved).endswith(f"{already} Access was revoked since. {remedy}")
    assert conflict(api_access.deny, approved, "why").endswith(already)
    assert conflict(api_access.approve, denied).endswith(f"is denied already. {remedy}")


def test_an_address_has_one_pending_request_and_may_repeat_a_denied_one(store: Store) -> None:
    ask(store)
    futures = [store.write(lambda: api_access.request("Ada@Example.test", "x", "y", "z", now=2)) for _ in range(6)]
    assert all(isinstance(future.exception(), Conflict) for future in futures)
    store.write(lambda: api_access.deny(EMAIL, "too vague", now=3)).result()
    second = ask(store, now=4)
    assert store.write(lambda: api_access.approve(EMAIL, now=5)).result().request.id == second.id
    with pytest.raises(Conflict, match="has API access already"):
        ask(store)


def test_a_request_names_every_field_that_is_missing(store: Store) -> None:
    with pytest.raises(Invalid) as refusal:
        store.write(lambda: api_access.request("nobody", " ", "", "x" * 501, now=1)).result()
    assert set(refusal.value.errors) == {"email", "use_case", "volume", "organization"}


def test_the_list_holds_all_requests_and_accounts_with_access_but_no_request(store: Store) -> None:
    store.write(lambda: users.create("without@example.test", now=1)).result()
    store.write(lambda: users.create("granted@example.test", api_access=True, now=1)).result()
    ask(store)
    ask(store, "bob@example.test")
    store.write(lambda: api_access.approve(EMAIL, now=2)).result()
    found = [
        (entry.request and entry.request.email, entry.request and entry.request.state, entry.user and entry.user.email)
        for entry in store.read(api_access.list).result()
    ]
    assert found == [
        (EMAIL, "approved", EMAIL),
        ("bob@example.test", "pending", None),
        (None, None, "granted@example.test"),
    ]


def test_requests_are_pending_or_decided_newest_first(store: Store) -> None:
    for number in range(1, 8):
        ask(store, f"{number}@example.test")
    for number in (2, 4, 7):
        store.write(lambda number=number: api_access.deny(number, "no", now=9)).result()  # type: ignore[misc]  # bound in the loop
    store.write(lambda: api_access.approve(6, now=9)).result()

    def found(**wanted: Any) -> list[int]:
        return [request.id for request in store.read(lambda: api_access.requests(**wanted)).result()]

    assert found(pending=True, limit=9) == [5, 3, 1]
    assert found(pending=True, limit=1, before=5) == [3]
    assert found(pending=False, limit=3) == [7, 6, 4]
    assert found(pending=False, limit=3, before=4) == [2]
    assert store.read(lambda: api_access.get(6).state).result() == "approved"
    with pytest.raises(NotFound, match="no access request 8"):
        store.read(lambda: api_access.get(8)).result()


@pytest.mark.only_on("postgres")
def test_a_grant_takes_no_right_that_is_granted_at_the_same_time(store: Store) -> None:
    store.write(lambda: users.create(EMAIL, now=1)).result()

    def grant(*, plays: bool) -> None:
        api_access.grant(users.by_email(EMAIL), plays=plays, now=1)

    require_wait(store, partial(grant, plays=True), partial(grant, plays=False))
    assert rights(store) == (True, True)
