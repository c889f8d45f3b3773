"""The plays of the fixtures."""

from collections import Counter
from functools import partial

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import export_rows, realtime
from musicsvc.store.insights import figures as insight_figures
from musicsvc.store.insights.scopes import Scope
from musicsvc.store.models import Track
from musicsvc.store.plays import periods
from musicsvc.store.plays.rollups import blocks, reader
from musicsvc.store.plays.subjects import ARTIST, TRACK, Subject
from musicsvc.store.seeding import fixtures, plays


def demo_scope(store: Store) -> Scope:
    """Return everything that the account of the demo manages."""
    return Scope(store.read(lambda: users.by_email(fixtures.DEMO_EMAIL).id).result())


def growth(scope: Scope, window: periods.Window) -> list[float]:
    """Return the growth of the artists' plays."""
    return [row.figures.plays_change or 0 for row in export_rows.rows(ARTIST, scope, window)]


def by_weekday(store: Store, now: int) -> Counter[str]:
    """Return the plays of the first example track in 100 weeks by day of the week."""
    today = periods.day_of(now)
    days = store.read(partial(reader.counts_by_day, TRACK, 1, range(today - 700, today))).result()
    found: Counter[str] = Counter()
    for day, (count, _) in days.items():
        found[f"{periods.to_date(day):%a}"] += count
    return found


@pytest.mark.slow
def test_the_small_world_was_heard_for_a_year_and_the_same_plays_are_never_put_in_twice(
    store: Store, clock: MovableClock
) -> None:
    now = clock.now()
    store.write(lambda: fixtures.load(now=now)).result()
    new = store.write(lambda: plays.load(now=now)).result()
    assert new > 30_000
    assert not store.write(lambda: blocks.roll_up(1)).result()
    assert store.write(lambda: plays.load(now=now)).result() == 0
    assert 0 < store.write(lambda: plays.load(now=now + DAY)).result() < 200

    def figures() -> list[insight_figures.Figures]:
        first = Track.select(Track.id).order_by(Track.id).scalar()
        subject = Subject(TRACK, first)
        return [insight_figures.figures(subject, periods.window(period, now)) for period in periods.DAYS]

    demo = demo_scope(store)
    for period in periods.DAYS:
        changes = store.read(partial(growth, demo, periods.window(period, now))).result()
        assert min(changes) < 0 < max(changes), period
    live = store.read(lambda: realtime.load(Subject(TRACK, 1), now)).result()
    assert live.active_listeners > 0
    assert 10 < live.plays_last_hour < 30

    for found in store.read(figures).result():
        assert 0 < found.listeners <= found.plays <= found.plays_total
        assert found.plays_change is not None
        assert abs(found.plays_change) < 100

    week = by_weekday(store, now)
    assert min(week.pop("Sat"), week.pop("Sun")) > 1.2 * max(week.values())
