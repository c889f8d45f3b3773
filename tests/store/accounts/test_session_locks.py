"""Sign-ins beside changes of the same account, in transactions of PostgreSQL that run at the same time."""

from collections.abc import Callable
from functools import partial
from threading import Event

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import sign_in, user_search, users
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.engine import name_index
from musicsvc.store.engine.store import Store
from musicsvc.store.security import sessions
from tests.conftest import NOW
from tests.support.postgres_locks import one_waits, require_wait
from tests.support.program import PATIENCE, until

pytestmark = pytest.mark.only_on("postgres")  # on SQLite one transaction writes at a time
CHANGES = {
    "password": lambda: users.set_password(users.get(1), "new", now=NOW),
    "suspension": lambda: users.suspend(users.get(1), now=NOW),
}


def open_session() -> None:
    sessions.create(users.get(1), address="::1", agent="", now=NOW)


@pytest.fixture
def account(store: Store) -> Credentials:
    user = store.write(lambda: users.create("ann@label.test", password_hash="old", now=NOW)).result()
    return Credentials(user.id, "old")


@pytest.mark.on_both
@pytest.mark.parametrize("create", [lambda: None, open_session], ids=["before its session", "after it"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_account_waits_for_a_sign_in_and_ends_its_session(
    store: Store, account: Credentials, create: Callable[[], None], change: Callable[[], None]
) -> None:
    def begin() -> None:
        assert sign_in.still_valid(account) is not None
        create()

    require_wait(store, begin, change)
    assert store.read(lambda: sessions.list(1, now=NOW)).result() == ()


@pytest.mark.usefixtures("account")
def test_a_new_password_and_a_sign_in_wait_for_each_other_without_a_deadlock(store: Store) -> None:
    """A deadlock would cost a second, after which one of the two is tried again."""
    ben = store.write(lambda: users.create("ben@label.test", now=NOW)).result()
    store.write(lambda: sessions.create(ben, address="", agent="", now=NOW - DAY)).result()  # both delete it
    tried, locked = [], Event()

    def set_password() -> None:
        tried.append("password")
        CHANGES["password"]()
        if not locked.is_set():
            locked.set()
            until(lambda: one_waits(store))
        open_session()

    def sign_in_again() -> None:
        tried.append("sign-in")
        open_session()

    setting = store.write(set_password)
    assert locked.wait(PATIENCE)
    store.write(sign_in_again).result()
    setting.result()
    assert tried == ["password", "sign-in"]


@pytest.mark.usefixtures("account")
def test_an_account_is_found_by_the_last_of_names_that_are_set_at_the_same_time(store: Store) -> None:
    def rename(name: str) -> None:
        users.set_display_name(users.get(1), name)

    require_wait(store, partial(rename, "Byron"), partial(rename, "Lovelace"))
    found = [store.read(partial(user_search.find, name, 9)).result() for name in ("Byron", "Lovelace")]
    assert [len(each) for each in found] == [0, 1]
    require_wait(store, partial(rename, "King"), CHANGES["suspension"])
    assert store.read(name_index.differences).result() == []
