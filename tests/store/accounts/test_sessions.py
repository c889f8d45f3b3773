"""Sessions of browsers end twelve hours after their last use, and thirty days after their start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import users
from musicsvc.store.models import Session
from musicsvc.store.security import sessions
from tests.conftest import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from musicsvc.store.engine.store import Store


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
    sign_in(ends)
    assert store.read(partial(state, ends)).result() == (False, 2, 2)
