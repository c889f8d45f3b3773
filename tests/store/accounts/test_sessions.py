"""Sessions of browsers end twelve hours after their last use, and thirty days after their start."""

from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Session
from musicsvc.store.security import sessions
from tests.conftest import NOW


@pytest.fixture
def sign_in(store: Store) -> Callable[[int], str]:
    """Return a function that creates a session at a time and returns its id."""
    user = store.write(lambda: users.create("ann@label.test", now=NOW)).result()
    return lambda now: store.write(partial(sessions.create, user, address="::1", agent="", now=now)).result()


@pytest.mark.parametrize(("used", "ends"), [(NOW, NOW + DAY // 2), (NOW + 30 * DAY - 1, NOW + 30 * DAY)])
def test_an_ended_session_is_not_found_and_the_next_sign_in_deletes_it(
    store: Store, sign_in: Callable[[int], str], used: int, ends: int
) -> None:
    value = sign_in(NOW)
    store.write(partial(sessions.touch, 1, now=used)).result()

    def state(now: int) -> tuple[bool, int, int]:
        """Return whether the session is found, how many the account has, and how many are stored."""
        found = sessions.find(value, now=now) is not None
        return found, len(sessions.list(1, now=now)), Session.select().count()

    assert store.read(partial(state, ends - 1)).result() == (True, 1, 1)
    sign_in(ends - 1)
    assert store.read(partial(state, ends - 1)).result() == (True, 2, 2)
    assert store.read(partial(state, ends)).result() == (False, 1, 2)
    sign_in(used + DAY // 2)
    assert store.read(lambda: Session.get_or_none(Session.digest == sessions.digest(value))).result() is None


def test_the_51st_session_ends_the_one_unused_for_longest(store: Store, sign_in: Callable[[int], str]) -> None:
    values = [sign_in(NOW + number) for number in range(50)]
    store.write(partial(sessions.touch, 1, now=NOW + 99)).result()
    store.write(lambda: users.create("ben@label.test", now=NOW)).result()
    other = store.write(lambda: sessions.create(users.get(2), address="", agent="", now=NOW)).result()

    def signed_in(now: int) -> set[int]:
        return {number for number, value in enumerate(values) if sessions.find(value, now=now)}

    assert store.read(partial(signed_in, NOW + 99)).result() == set(range(50))
    values.append(sign_in(NOW - 5))  # by a clock that was set back
    assert store.read(partial(signed_in, NOW + 99)).result() == set(range(51)) - {1}
    values += [sign_in(NOW + 100 + number) for number in range(3)]
    assert store.read(partial(signed_in, NOW + 110)).result() == set(range(54)) - {1, 2, 3, 50}
    assert store.read(lambda: sessions.find(other, now=NOW + 1) is not None).result()


def test_sign_ins_at_the_same_time_leave_50_sessions(store: Store, sign_in: Callable[[int], str]) -> None:
    sign_in(NOW)
    create = partial(sessions.create, address="", agent="", now=NOW)
    waiting = [store.write(lambda: create(users.get(1))) for _ in range(70)]
    assert len({each.result() for each in waiting}) == 70
    assert store.read(lambda: len(sessions.list(1, now=NOW, limit=99))).result() == 50
