"""The plays of the fixtures."""

from musicsvc.clock import DAY, MovableClock
from musicsvc.store.engine.store import Store
from musicsvc.store.insights import figures as insight_figures
from musicsvc.store.models import Track
from musicsvc.store.plays import periods
from musicsvc.store.plays.subjects import TRACK, Subject
from musicsvc.store.seeding import fixtures, plays


def test_the_small_world_was_heard_for_a_year_and_the_same_plays_are_never_put_in_twice(
    store: Store, clock: MovableClock
) -> None:
    now = clock.now()
    store.write(lambda: fixtures.load(now=now)).result()
    new = store.write(lambda: plays.load(now=now)).result()
    assert new > 30_000
    assert store.write(lambda: plays.load(now=now)).result() == 0
    assert 0 < store.write(lambda: plays.load(now=now + DAY)).result() < 200

    def figures() -> list[insight_figures.Figures]:
        first = Track.select(Track.id).order_by(Track.id).scalar()
        subject = Subject(TRACK, first)
        return [insight_figures.figures(subject, periods.window(period, now)) for period in periods.DAYS]

    for found in store.read(figures).result():
        assert 0 < found.listeners <= found.plays <= found.plays_total
        assert found.plays_change is not None
        assert abs(found.plays_change) < 100
