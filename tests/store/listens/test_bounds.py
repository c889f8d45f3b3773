"""Bounds of pending listens: of an account, of all, and of their age; refused ones are counted and named."""

from collections import Counter
from functools import partial

import pytest

from musicsvc.clock import DAY
from musicsvc.errors import NotFound
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.listens import matching, pending, receiving, refusals, resolving
from musicsvc.store.models import OwnPlayDay, PendingListen
from tests.conftest import NOW
from tests.store.listens.test_resolving import AT, hear, heard, make, played, settle, waiting
from tests.support import reported_plays
from tests.support.bounds import Bounds


@pytest.fixture
def people(store: Store) -> list[Identity]:
    account = partial(reported_plays.account, reports_plays=False)
    return [store.write(partial(account, email=f"{name}@label.test")).result() for name in ("ann", "ben", "cleo")]


def left(store: Store) -> list[tuple[int, int]]:
    """Return account and time of the listens that wait, in the order in which they came in."""
    rows = PendingListen.select(PendingListen.user, PendingListen.played_at).order_by(PendingListen.id)
    found: list[tuple[int, int]] = store.read(
        lambda: [*rows.where(PendingListen.counted_for.is_null()).tuples()]
    ).result()
    return found


def test_what_exceeds_the_pending_listens_of_an_account_is_refused_and_counted(
    store: Store, people: list[Identity], bounds: Bounds
) -> None:
    bounds(most_waiting_listens=5)
    ann, ben, _ = people
    store.write(partial(make, "Known", "Ann Example")).result()
    hear(store, ann, *[heard(each) for each in range(3)])
    hear(store, ann, *[heard(10 + each, title="Other") for each in range(4)], heard(20, title="Known"))
    assert waiting(store, ann) == {("Ann Example", "Morning"): 3, ("Ann Example", "Other"): 2}
    assert len(played(store)) == 1  # what has a track is no pending listen
    assert store.read(lambda: refusals.of_account(ann.user_id)).result() == [("waiting", 2, NOW)]
    held = store.read(lambda: sum(row.plays for row in OwnPlayDay.select())).result()
    assert held == 6  # what is refused takes no place of the day
    hear(store, ben, heard(title="Other"))  # others have a bound of their own
    assert len(left(store)) == 6
    store.write(partial(make, "Morning", "Ann Example")).result()
    settle(store)
    hear(store, ann, *[heard(10 + each, title="Other") for each in range(4)])  # there is room again
    assert waiting(store, ann) == {("Ann Example", "Other"): 4}


def test_beyond_the_bound_of_all_the_oldest_of_the_account_that_has_most_go(
    store: Store, people: list[Identity], bounds: Bounds
) -> None:
    bounds(most_listens=7, listens_cleaned=2)
    for person, first, number in ((0, 0, 2), (1, 10, 4), (2, 20, 1), (1, 30, 2)):
        hear(store, people[person], *[heard(first + each) for each in range(number)])
    before = left(store)
    assert len(before) == 9
    most = [row for row in before if row[0] == people[1].user_id]
    for _ in range(3):
        store.write(partial(resolving.clean, NOW)).result()
    assert left(store) == [row for row in before if row not in most[:2]]
    assert Counter(account for account, _ in left(store)) == {
        people[0].user_id: 2,
        people[1].user_id: 4,
        people[2].user_id: 1,
    }


def test_listens_of_400_days_ago_go(store: Store, people: list[Identity]) -> None:
    hear(store, people[0], *[heard(each) for each in range(3)])
    first = store.read(lambda: PendingListen.select().order_by(PendingListen.id).get().id).result()
    old = partial(PendingListen.update(received_at=NOW - 400 * DAY).where(PendingListen.id <= first + 1).execute)
    store.write(old).result()
    for now, number in ((NOW, 3), (NOW + 1, 1)):
        store.write(partial(resolving.clean, now)).result()
        assert (now, len(left(store))) == (now, number)
    assert AT < NOW


def test_dismissed_listens_go_when_no_repeat_is_accepted_any_more(store: Store, people: list[Identity]) -> None:
    ann = people[0]
    hear(store, ann, heard(), heard(2), heard(3, title="Other"))
    store.write(lambda: pending.dismiss(matching.keys(heard())[0], actor=ann)).result()
    held = PendingListen.select().where(PendingListen.counted_for == 0)
    for now, number, refused in ((AT + 14 * DAY, 1, []), (AT + 14 * DAY + 1, 0, [("old", 1, AT + 14 * DAY + 1)])):
        store.write(partial(resolving.clean, now)).result()
        assert store.read(held.count).result() == number
        hear(store, ann, heard(), now=now)
        assert waiting(store, ann) == {("Ann Example", "Other"): 1}
        assert store.read(lambda: refusals.of_account(ann.user_id)).result() == refused


def test_the_bounds_are_those_of_the_contract() -> None:
    assert (receiving.MOST_WAITING, resolving.MOST, resolving.KEPT) == (10_000, 1_000_000, 400 * DAY)


def test_an_entry_that_is_dismissed_after_it_was_found_can_be_neither_named_nor_dismissed(
    store: Store, people: list[Identity]
) -> None:
    ann = people[0]
    hear(store, ann, heard())
    dismiss = partial(pending.dismiss, matching.keys(heard())[0], actor=ann)
    store.write(dismiss).result()

    for unit in (dismiss, partial(pending.name, matching.keys(heard())[0], 1, actor=ann, now=NOW)):
        with pytest.raises(NotFound):
            store.write(unit).result()
