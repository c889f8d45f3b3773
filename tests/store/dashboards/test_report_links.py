"""Share links open one report for as long as their owner has the rights to it."""

from functools import partial
from typing import Any

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.errors import Conflict, NotFound
from musicsvc.store.accounts import users
from musicsvc.store.dashboards import report_links
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, PlayProgress, Track
from musicsvc.store.plays.periods import Window, window
from musicsvc.store.plays.subjects import ALBUM, TRACK, Subject
from musicsvc.store.security import security_events
from musicsvc.store.security.sessions import SessionIdentity
from tests.support.listening_world import Catalog, catalog


@pytest.fixture
def made(store: Store, clock: MovableClock) -> Catalog:
    return store.write(partial(catalog, clock.now())).result()


@pytest.fixture
def shared(store: Store, clock: MovableClock, made: Catalog) -> tuple[int, int]:
    """Return the id and the time of a link to the second track, which artists 0 and 1 share."""
    subject, days = Subject(TRACK, made.tracks[1]), window("30-days", clock.now())

    def create() -> tuple[int, int]:
        link = report_links.create([subject], days, user_id=made.manager.user_id, now=clock.now())
        return link.id, link.created_at

    return store.write(create).result()


def opened(store: Store, shared: tuple[int, int], now: int) -> report_links.SharedReport:
    return store.read(lambda: report_links.open(*shared, now=now)).result()


def test_a_link_opens_its_report_on_fixed_days_until_it_expires(
    store: Store, clock: MovableClock, made: Catalog, shared: tuple[int, int]
) -> None:
    now = clock.now()
    report = opened(store, shared, now + 30 * DAY - 1)

    assert (report.subjects, report.compared) == ((Subject(TRACK, made.tracks[1]),), False)
    assert report.window[1:3] == window("30-days", now)[1:3]
    assert report.expires_at == now + 30 * DAY
    assert opened(store, shared, now - DAY).window[1:3] == report.window[1:3]  # the clock went back
    with pytest.raises(NotFound, match="does not work"):
        opened(store, shared, now + 30 * DAY)
    with pytest.raises(NotFound):
        opened(store, (shared[0], shared[1] + 1), now)


@pytest.mark.parametrize("period", report_links.MOVING)
def test_a_moving_period_is_that_of_the_day_on_which_the_link_is_opened(
    store: Store, clock: MovableClock, made: Catalog, period: str
) -> None:
    now, lifetime = clock.now(), 80 * DAY
    subject = [Subject(TRACK, made.tracks[0])]
    options: dict[str, Any] = {"user_id": made.manager.user_id, "now": now, "lifetime": lifetime, "programs": True}
    link = store.write(lambda: report_links.create(subject, period, **options)).result()
    assert (link.moving, link.programs, link.window[1:3]) == (period, True, window(period, now)[1:3])
    for days in (0, 1, 33, 64):
        at = now + days * DAY
        report = store.read(partial(report_links.open, link.id, link.created_at, now=at, program=True)).result()
        assert (report.moving, report.window[:4]) == (period, window(period, at)[:4])
    assert report.window.first > link.window.first


def test_a_report_says_that_growth_compares_with_a_whole_day(
    store: Store, clock: MovableClock, shared: tuple[int, int]
) -> None:
    now = clock.now()
    assert opened(store, shared, now).window.before.label == "previous 30 days"
    store.write(PlayProgress.update(kept_from=now // DAY).execute).result()
    assert opened(store, shared, now).window.before.label == "previous 30 days, counted whole"


def _delete(made: Catalog, number: int) -> None:
    Track.delete().where(Track.id == made.tracks[number]).execute()


def test_a_link_to_a_track_that_was_deleted_does_not_work_and_has_no_name_in_the_list(
    store: Store, clock: MovableClock, made: Catalog, shared: tuple[int, int]
) -> None:
    first, end = window("30-days", clock.now())[1:3]
    number, created = shared
    subjects, days = (Subject(TRACK, made.tracks[1]),), Window("custom", first, end)
    row = report_links.LinkRow(number, subjects, ("Track 1",), days, created, created + 30 * DAY)
    links = partial(report_links.list, made.manager.user_id, now=clock.now())
    assert store.read(links).result() == [row]
    store.write(partial(_delete, made, 1)).result()
    assert store.read(links).result() == [row._replace(names=(None,))]
    with pytest.raises(NotFound, match="does not work"):
        opened(store, shared, clock.now())


def test_a_link_compares_those_of_its_subjects_that_its_owner_may_read(
    store: Store, clock: MovableClock, made: Catalog
) -> None:
    subjects, now = [Subject(TRACK, made.tracks[each]) for each in (3, 0, 1)], clock.now()

    def create() -> tuple[int, int]:
        link = report_links.create(subjects, window("7-days", now), user_id=made.manager.user_id, now=now)
        return link.id, link.created_at

    shared = store.write(create).result()
    assert (opened(store, shared, now).subjects, opened(store, shared, now).compared) == (tuple(subjects), True)
    store.write(partial(_delete, made, 0)).result()
    (row,) = store.read(lambda: report_links.list(made.manager.user_id, now=now)).result()
    assert (row.subjects, row.names) == (tuple(subjects), ("Track 3", None, "Track 1"))
    store.write(Artist.update(manager=None).where(Artist.id == made.artists[2]).execute).result()
    assert opened(store, shared, now).subjects == (subjects[0], subjects[2])  # two managed artists are left on track 3
    store.write(Artist.update(manager=None).where(Artist.id.in_(made.artists)).execute).result()
    with pytest.raises(NotFound, match="does not work"):
        opened(store, shared, now)
    events = store.read(lambda: security_events.find(limit=9)).result()
    numbers = ", ".join(str(each.id) for each in subjects)
    assert f"link {shared[0]} to track {numbers}" in {each.reason for each in events}


def session(user_id: int) -> SessionIdentity:
    return SessionIdentity(1, 0, user_id, "", "", None, False, False, False)


def test_only_its_owner_lists_and_ends_a_link(
    store: Store, clock: MovableClock, made: Catalog, shared: tuple[int, int]
) -> None:
    now, owner = clock.now(), made.manager.user_id
    album = Subject(ALBUM, made.albums[1])

    def more() -> int:
        report_links.create([album], Window("custom", 100, 131), user_id=owner, now=now - 40 * DAY)
        other = users.create("other@label.test", now=now).id
        report_links.create([album], Window("custom", 100, 131), user_id=owner, now=now + 1)
        return other

    other = store.write(more).result()
    listed = store.read(lambda: report_links.list(owner, now=now)).result()
    assert [(row.subjects, row.names, row.expires_at - row.created_at) for row in listed] == [
        ((album,), ("Album 1",), 30 * DAY),
        ((Subject(TRACK, made.tracks[1]),), ("Track 1",), 30 * DAY),
    ]
    assert listed[0].window[1:3] == (100, 131)
    assert store.read(lambda: report_links.list(other, now=now)).result() == []

    def end(user_id: int) -> None:
        report_links.end(report_links.get_own(shared[0], actor=session(user_id)), user_id=user_id, now=now)

    with pytest.raises(NotFound):
        store.write(lambda: end(other)).result()
    assert opened(store, shared, now)
    store.write(lambda: end(owner)).result()
    with pytest.raises(NotFound):
        opened(store, shared, now)
    with pytest.raises(NotFound):
        store.write(lambda: end(owner)).result()

    events = store.read(lambda: security_events.find(limit=9)).result()
    about = f"link {shared[0]} to track {made.tracks[1]}"
    assert [(each.kind, each.account_id, each.reason) for each in events if each.reason == about] == [
        ("report.shared", owner, about),
        ("report.unshared", owner, about),
    ]


def test_an_account_has_a_hundred_links_at_most_without_expired_ones(
    store: Store, clock: MovableClock, made: Catalog
) -> None:
    now, owner = clock.now(), made.manager.user_id

    def create(at: int, times: int = 1) -> None:
        for _ in range(times):
            report_links.create([Subject(TRACK, made.tracks[0])], Window("custom", 1, 2), user_id=owner, now=at)

    store.write(lambda: create(now, 100)).result()
    with pytest.raises(Conflict, match="100 share links"):
        store.write(lambda: create(now + 30 * DAY - 1)).result()
    store.write(lambda: create(now + 30 * DAY)).result()
    assert len(store.read(lambda: report_links.list(owner, now=now)).result()) == 1
