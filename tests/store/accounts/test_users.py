"""Accounts: creation, lookup and suspension; one account per e-mail in any spelling."""

from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.clock import Clock
from musicsvc.errors import Conflict, Invalid, NotFound
from musicsvc.store.accounts import email_addresses, users
from musicsvc.store.engine.store import Store
from musicsvc.store.security.security_events import Administrator


def test_an_account_is_named_after_the_part_before_the_at(store: Store, clock: Clock) -> None:
    user = store.write(lambda: users.create(" ada.l@example.test ", now=clock.now())).result()
    assert (user.email, user.display_name) == ("ada.l@example.test", "ada.l")
    assert (user.admin, user.api_access, user.reports_plays, user.password_hash) == (False, False, False, None)
    assert store.read(lambda: users.get(user.id).created_at).result() == clock.now()


def test_an_email_is_found_in_another_case_and_in_another_unicode_form(store: Store, clock: Clock) -> None:
    user = store.write(lambda: users.create("Zoë@example.test", now=clock.now())).result()
    assert store.read(lambda: users.by_email("ZOE\u0308@EXAMPLE.test").id).result() == user.id
    with pytest.raises(NotFound, match=r"There is no account zoe@example.test\."):
        store.read(lambda: users.by_email("zoe@example.test")).result()


def test_of_parallel_registrations_of_an_email_one_succeeds(store: Store, clock: Clock) -> None:
    def unit(spelling: str) -> Callable[[], int]:
        return lambda: users.create(spelling, now=clock.now()).id

    futures = [store.write(unit(spelling)) for spelling in ["race@example.test", "Race@example.test"] * 8]
    failures = [future.exception() for future in futures]
    assert failures.count(None) == 1
    assert all(failure is None or isinstance(failure, Invalid) for failure in failures)
    assert len(store.read(users.list).result()) == 1


@pytest.mark.parametrize("name", ["", "   ", "x" * 101])
def test_a_display_name_has_one_to_a_hundred_characters(store: Store, clock: Clock, name: str) -> None:
    made = store.write(lambda: users.create("bob@example.test", now=1)).result()
    create = partial(users.create, display_name=name, now=clock.now())
    says = {"display_name": "The display name must have 1 to 100 characters."}
    for unit, errors in (
        (partial(create, "ada@example.test"), says),
        (partial(users.set_display_name, made, name), says),
        (partial(create, "ada@"), says | {"email": email_addresses.INVALID}),
    ):
        with pytest.raises(Invalid) as refusal:
            store.write(unit).result()
        assert refusal.value.errors == errors
    assert store.read(lambda: [user.display_name for user in users.list()]).result() == ["bob"]


def test_a_suspension_keeps_its_first_moment_and_reason_and_can_be_undone(store: Store, clock: Clock) -> None:
    made = store.write(lambda: users.create("ada@example.test", now=clock.now())).result()
    store.write(lambda: users.suspend(users.get(made.id), now=5, reason="scraping")).result()
    store.write(lambda: users.suspend(users.get(made.id), now=9, reason="again")).result()
    user = store.read(lambda: users.get(made.id)).result()
    assert (user.suspended_at, user.suspended_reason) == (5, "scraping")
    store.write(lambda: users.reinstate(users.get(made.id), now=11)).result()
    user = store.read(lambda: users.get(made.id)).result()
    assert (user.suspended_at, user.suspended_reason) == (None, None)


def test_an_administrator_suspends_others_but_not_the_own_account(store: Store) -> None:
    def suspend(user_id: int, admin_id: int) -> None:
        store.write(lambda: users.suspend(users.get(user_id), now=2, actor=Administrator(admin_id))).result()

    for name in ("ann", "ben"):
        store.write(lambda name=name: users.create(f"{name}@example.test", admin=True, now=1)).result()  # type: ignore[misc]  # bound in the loop
    with pytest.raises(Conflict, match="your own account"):
        suspend(1, 1)
    suspend(2, 1)
    with pytest.raises(Conflict, match="is suspended"):  # as if both suspended each other at the same time
        suspend(1, 2)
    store.write(lambda: users.reinstate(users.get(2), now=3)).result()
    store.write(lambda: users.set_admin(users.get(2), admin=False, now=3)).result()
    with pytest.raises(Conflict, match="no longer an administrator"):  # as if the other one ended the right meanwhile
        suspend(1, 2)
    suspend(2, 1)
    assert [user.suspended_at for user in store.read(users.list).result()] == [None, 2]
