"""Answers to requests with a key: each request has one effect, whatever fails around it."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from musicsvc.clock import DAY
from musicsvc.errors import InProgress, Invalid, NotFound
from musicsvc.store.accounts import kept_answers, users
from musicsvc.store.accounts.kept_answers import CLEANED, MOST_BYTES, MOST_KEYS, Keyed
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import KeptAnswer, Tag
from musicsvc.store.people import deletion
from tests.conftest import NOW
from tests.support.postgres_locks import require_begun_waits

PATH = "/api/v1/tags"


@pytest.fixture(autouse=True)
def _accounts(store: Store) -> None:
    store.write(lambda: [users.create(f"{name}@label.test", now=NOW) for name in ("ann", "ben")]).result()


class CrashError(Exception):
    """Ends a unit after all that it does, so that its transaction is rolled back."""


def _asked(key: str, body: int = 0, account: int = 1, path: str = PATH) -> Keyed:
    return Keyed(account, key, path, bytes([body]) * 32)


def _tag(name: str) -> int:
    return int(Tag.create(name=name).id)


def _encode(value: object) -> bytes:
    return json.dumps(value).encode()


def _send(store: Store, asked: Keyed, name: str, now: int = NOW) -> Future[Any]:
    return store.write(partial(kept_answers.once, asked, partial(_tag, name), _encode, now=now))


def _kept(store: Store, account: int = 1) -> list[str]:
    rows = KeptAnswer.select().where(KeptAnswer.user == account).order_by(KeptAnswer.id)
    return store.read(lambda: [row.key for row in rows]).result()


def _fill(count: int, account: int = 1, kept_at: int = NOW) -> None:
    fields = ["user", "key", "path", "body_hash", "answer", "kept_at"]
    bulk.insert(KeptAnswer, fields, [(account, f"k{n}", PATH, bytes(32), b"7", kept_at) for n in range(count)])


@pytest.mark.on_both
def test_an_account_has_1000_keys_and_the_oldest_go(store: Store) -> None:
    store.write(partial(_fill, MOST_KEYS - 1)).result()
    store.write(partial(_fill, 3, account=2)).result()
    _send(store, _asked("a"), "a").result()
    assert _kept(store)[0] == "k0"
    _send(store, _asked("b"), "b").result()
    _send(store, _asked("c"), "c").result()
    assert _kept(store) == [*(f"k{n}" for n in range(2, MOST_KEYS - 1)), "a", "b", "c"]
    assert _kept(store, 2) == ["k0", "k1", "k2"]
    assert isinstance(_send(store, _asked("k0"), "again").result(), int)
    assert _send(store, _asked("k7"), "none").result() == b"7"


def test_a_key_that_is_used_again_after_a_day_is_the_newest(store: Store) -> None:
    store.write(partial(_fill, MOST_KEYS)).result()
    _send(store, _asked("k0"), "again", NOW + DAY).result()
    _send(store, _asked("new"), "new", NOW + DAY).result()
    assert _kept(store)[0] == "k2"
    assert _kept(store)[-2:] == ["k0", "new"]


@pytest.mark.on_both
def test_old_answers_are_deleted_some_at_a_time(store: Store) -> None:
    store.write(partial(_fill, CLEANED + 9, kept_at=NOW - DAY)).result()
    store.write(partial(_fill, 3, account=2, kept_at=NOW - DAY + 1)).result()
    store.write(partial(kept_answers.clean, NOW)).result()
    assert len(_kept(store)) == 9
    store.write(partial(kept_answers.clean, NOW)).result()
    assert (_kept(store), len(_kept(store, 2))) == ([], 3)


def test_an_answer_of_64_kib_is_kept_and_a_larger_one_not(store: Store) -> None:
    for size, kept in ((MOST_BYTES, True), (MOST_BYTES + 1, False)):
        once = partial(kept_answers.once, _asked(str(size)), partial(bytes, size), bytes, now=NOW)
        store.write(once).result()
        assert (_kept(store)[-1:] == [str(size)]) is kept


def test_a_unit_that_fails_keeps_nothing(store: Store) -> None:
    def fail() -> None:
        _tag("half")
        raise NotFound("There is no such thing.")

    with pytest.raises(NotFound):
        store.write(partial(kept_answers.once, _asked("k"), fail, _encode, now=NOW)).result()
    assert _kept(store) == []
    assert isinstance(_send(store, _asked("k", body=2), "whole").result(), int)
    assert store.read(lambda: [tag.name for tag in Tag.select()]).result() == ["whole"]


@pytest.mark.on_both
def test_no_answer_is_kept_of_an_account_that_is_deleted_meanwhile(store: Store) -> None:
    store.write(partial(deletion.delete, 2, now=NOW)).result()
    assert isinstance(_send(store, _asked("k", account=2), "late").result(), int)
    assert _kept(store, 2) == []


@pytest.mark.only_on("postgres")
def test_a_request_waits_for_the_deletion_of_its_account_before_its_answer_is_kept(store: Store) -> None:
    def delete() -> None:
        deletion.delete(2, now=NOW)

    require_begun_waits(store, delete, lambda: _send(store, _asked("k", account=2), "late"))
    assert _kept(store, 2) == []


@pytest.mark.only_on("postgres")
def test_a_key_of_another_transaction_is_waited_for_by_the_caller_and_not_by_the_thread(store: Store) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def hold() -> int:
        begun.set()
        assert may_end.wait(60)
        return _tag("first")

    first = store.write(partial(kept_answers.once, _asked("k"), hold, _encode, now=NOW))
    assert begun.wait(60)
    try:
        with pytest.raises(InProgress):
            _send(store, _asked("k"), "second").result()
        assert isinstance(_send(store, _asked("k", account=2), "another account").result(), int)
        assert isinstance(_send(store, _asked("K"), "another key").result(), int)
    finally:
        may_end.set()
    answer = _encode(first.result())
    assert _send(store, _asked("k"), "second").result() == answer


@contextmanager
def _held(store: Store) -> Iterator[None]:
    """Let all writes of the block wait, so that SQLite does them in one transaction."""
    begun, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert may_end.wait(60)

    done = store.write(hold)
    assert begun.wait(60)
    try:
        yield
    finally:
        may_end.set()
        done.result()


class Sent(NamedTuple):
    """A request: its account, key and body, what becomes of it, and the hours that pass before it."""

    account: int
    key: str
    body: int
    fails: bool
    crashes: bool
    hours: int


SENT = st.builds(
    Sent,
    account=st.integers(1, 2),
    key=st.sampled_from("ab"),
    body=st.integers(0, 1),
    fails=st.booleans(),
    crashes=st.booleans(),
    hours=st.sampled_from((0, 0, 0, 13)),
)


def _unit(sent: Sent, number: int, now: int) -> Callable[[], Any]:
    asked = _asked(sent.key, sent.body, sent.account)

    def execute() -> int:
        _tag(f"tag {number}")
        if sent.fails:
            raise NotFound("There is no such thing.")
        return number

    def run() -> Any:
        result = kept_answers.once(asked, execute, _encode, now=now)
        if sent.crashes:
            raise CrashError
        return result

    return run


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # which does writes that wait in one transaction, in their order
@given(st.lists(st.lists(SENT, min_size=1, max_size=7), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_requests_have_one_effect_each_whatever_fails(store: Store, groups: list[list[Sent]]) -> None:
    """Compare with a dictionary. Requests of a group share a transaction; some fail, some are undone after all."""
    store.write(lambda: KeptAnswer.delete().execute() and None).result()
    store.write(lambda: Tag.delete().execute() and None).result()
    kept: dict[tuple[int, str], tuple[int, int, int]] = {}
    effects, now, number = list[str](), NOW, 0
    for group in groups:
        expected, found = list[Any](), list[Future[Any]]()
        with _held(store):
            for sent in group:
                number, now = number + 1, now + sent.hours * DAY // 24
                found.append(store.write(_unit(sent, number, now)))
                expected.append(_expected(kept, effects, sent, number, now))
        assert [_outcome(each) for each in found] == expected
        assert store.read(lambda: [tag.name for tag in Tag.select().order_by(Tag.id)]).result() == effects


def _expected(
    kept: dict[tuple[int, str], tuple[int, int, int]], effects: list[str], sent: Sent, number: int, now: int
) -> Any:
    """Return what becomes of a request, and note its effect."""
    body, first, at = kept.get((sent.account, sent.key), (0, 0, now - DAY))
    if at > now - DAY:
        if body != sent.body:
            return Invalid
        return CrashError if sent.crashes else _encode(first)
    if sent.fails or sent.crashes:
        return NotFound if sent.fails else CrashError
    kept[sent.account, sent.key] = sent.body, number, now
    effects.append(f"tag {number}")
    return number


def _outcome(done: Future[Any]) -> Any:
    failure = done.exception()
    return done.result() if failure is None else type(failure)
