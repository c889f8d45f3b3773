"""The rate limit rule compared with a model, for each counter: in memory, in a file, on PostgreSQL."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from musicsvc.store import opening
from musicsvc.store.rate_limits import window
from musicsvc.store.rate_limits.shared import SharedHitCounter
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from musicsvc.store.rate_limits.window import (
    AHEAD,
    GRACE,
    Count,
    Hit,
    HitCounter,
    Limit,
    MemoryHitCounter,
    Status,
)
from tests.support.examples import examples

ONE_FIXTURE_FOR_ALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
BEGAN = 10_000_000  # a few hours after the machine's start


class Time:
    """A clock in milliseconds that the test sets."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=[pytest.param("in memory", marks=pytest.mark.only_on("sqlite")), "shared"])
def counter(
    request: pytest.FixtureRequest, time: Time, tmp_path: Path, new_database: Callable[..., str]
) -> Iterator[HitCounter]:
    """Each counter of the run's store."""
    if request.param == "in memory":
        yield MemoryHitCounter(time)
        return
    if request.config.getoption("--store") == "sqlite":
        shared = SqliteHitCounter(tmp_path / "limits.db", time)
        yield shared
        shared.close()
        return
    from musicsvc.store.rate_limits.postgres import PostgresHitCounter  # noqa: PLC0415 - the run on SQLite does without

    with opening.connect(new_database()) as store:
        yield PostgresHitCounter(store, time)


class Requests:
    """Requests for one unused key."""

    numbers = itertools.count()

    def __init__(self, counter: HitCounter, time: Time, amount: int, window: int) -> None:
        self.limit = Limit("token", amount, window)
        self._counter = counter
        self._time = time
        self.hit = Hit(self.limit, str(next(self.numbers)))

    def __call__(self, after: int = 0) -> Status:
        self._time.now += after
        (status,) = self._counter.count([self.hit])
        return status


def rates(most: int = 40) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(1, most), st.sampled_from([1000, 7000, 60_000]))


def steps(window: int) -> st.SearchStrategy[list[int]]:
    """Generate times between requests: bursts, even intervals, pauses."""
    step = st.one_of(
        st.just(0),
        st.integers(0, window // 20),
        st.integers(0, window),
        st.integers(0, 3 * window),
        st.sampled_from([window - 1, window, window + 1, 2 * window - 1, 2 * window]),
    )
    return st.lists(step, min_size=1, max_size=60)


cases = rates().flatmap(lambda rate: st.tuples(st.just(rate), steps(rate[1])))


class Model:
    """The documented rule, computed from the times of all allowed requests."""

    def __init__(self, amount: int, window: int) -> None:
        self.amount, self.window = amount, window
        self.windows: list[tuple[int, list[int]]] = []

    def remaining(self, now: int) -> int:
        """Return the number of requests that would be allowed."""
        while self.windows and now >= self.windows[-1][0] + self.window:
            self.windows.append((self.windows[-1][0] + self.window, []))
        if not self.windows:
            return self.amount
        began, taken = self.windows[-1]
        earlier = len(self.windows[-2][1]) if len(self.windows) > 1 else 0
        in_sight = Fraction(max(0, self.window - (now - began) - GRACE), self.window)
        return self.amount - len(taken) - int(earlier * in_sight)

    def count(self, now: int) -> None:
        if not self.windows or not any(taken for _, taken in self.windows[-2:]):
            self.windows = [(now, [])]  # after a long pause the next request begins a new window
        self.windows[-1][1].append(now)


@ONE_FIXTURE_FOR_ALL
@given(case=cases)
def test_the_counter_allows_and_reports_what_the_model_does(
    counter: HitCounter, time: Time, case: tuple[tuple[int, int], list[int]]
) -> None:
    (amount, window), pauses = case
    ask, model = Requests(counter, time, amount, window), Model(amount, window)
    for pause in pauses:
        before = model.remaining(time.now + pause)
        status = ask(pause)
        assert status.allowed is (before > 0)
        if status.allowed:
            model.count(time.now)
        assert status.remaining == max(0, before - 1)


@ONE_FIXTURE_FOR_ALL
@given(case=cases)
def test_a_window_allows_at_most_its_amount_and_any_period_of_its_length_twice_that(
    counter: HitCounter, time: Time, case: tuple[tuple[int, int], list[int]]
) -> None:
    (amount, window), pauses = case
    ask = Requests(counter, time, amount, window)
    times = []
    for pause in pauses:
        status = ask(pause)
        while status.allowed:
            times.append(time.now)
            status = ask()
    assert sum(moment < times[0] + window for moment in times) == amount or len(times) < amount
    for moment in times:
        assert sum(moment <= other < moment + window for other in times) <= 2 * amount
    # Over many windows the rate holds: one amount for each window with requests.
    assert len(times) <= amount * ((times[-1] - times[0]) // window + 2)


@ONE_FIXTURE_FOR_ALL
@given(case=cases)
def test_a_rejected_client_is_allowed_exactly_when_the_wait_is_over(
    counter: HitCounter, time: Time, case: tuple[tuple[int, int], list[int]]
) -> None:
    (amount, window), pauses = case
    ask = Requests(counter, time, amount, window)
    for pause in pauses:
        status = ask(pause)
        while status.remaining:
            status = ask()
        assert 0 < status.wait <= 2 * window
        if status.wait > 1:
            early = ask(status.wait - 1)
            assert (early.allowed, early.remaining, early.wait) == (False, 0, 1)
            assert ask(1).allowed
        else:
            assert ask(1).allowed


def test_the_requests_of_the_window_before_expire_one_by_one() -> None:
    limit = Limit("token", 50_000, 10_000)
    count = Count(BEGAN, 10_000, 30_000)
    found = [
        (after, status.remaining, status.wait)
        for after in (-AHEAD, -1, 0, 1, 5_000, 9_997, 9_998, 9_999)
        for status in [window.status(limit, count, BEGAN + after, allowed=True)]
    ]
    assert found == [
        (-5_000, 10_006, 15_000),
        (-1, 10_006, 10_001),
        (0, 10_006, 10_000),
        (1, 10_009, 9_999),
        (5_000, 25_006, 5_000),
        (9_997, 39_997, 3),
        (9_998, 40_000, 2),
        (9_999, 40_000, 1),
    ]


def test_a_refused_client_waits_until_enough_requests_of_the_window_before_have_expired() -> None:
    limit = Limit("token", 20, 10_000)
    found = {
        previous: window.status(limit, Count(BEGAN, 3, previous), BEGAN + 100, allowed=False).wait
        for previous in (0, 16, 17, 18, 20)
    }
    assert found == {0: 0, 16: 0, 17: 0, 18: 454, 20: 1_399}


def test_a_count_lasts_until_its_window_and_the_next_have_ended() -> None:
    limit, count = Limit("token", 9, 1_000), Count(BEGAN, 7, 5)
    found = [window.advance(limit, count, BEGAN + after) for after in (-AHEAD - 1, -AHEAD, 999, 1_000, 1_999, 2_000)]
    assert found == [
        (BEGAN - AHEAD - 1, 0, 0),
        count,
        count,
        (BEGAN + 1_000, 0, 7),
        (BEGAN + 1_000, 0, 7),
        (BEGAN + 2_000, 0, 0),
    ]


@ONE_FIXTURE_FOR_ALL
@given(rate=rates(), rounds=st.integers(1, 5), offset=st.fractions(0, 1))
@example(rate=(7, 60_000), rounds=5, offset=Fraction(1, 3))
@example(rate=(40, 1000), rounds=5, offset=Fraction(0))
def test_a_client_that_keeps_exactly_to_the_rate_is_never_rejected(
    counter: HitCounter, time: Time, rate: tuple[int, int], rounds: int, offset: Fraction
) -> None:
    amount, window = rate
    ask = Requests(counter, time, amount, window)
    first = time.now
    for number in range(amount * rounds + 1):
        time.now = first + int(offset + Fraction(number * window, amount))
        assert ask().allowed, number


@ONE_FIXTURE_FOR_ALL
@given(case=cases, seed=st.integers(0, 2**32))
def test_remaining_requests_can_be_used_at_any_time_during_the_wait(
    counter: HitCounter, time: Time, case: tuple[tuple[int, int], list[int]], seed: int
) -> None:
    (amount, window), pauses = case
    ask = Requests(counter, time, amount, window)
    for pause in pauses:
        status = ask(pause)
    chance = Random(seed)
    shares = [chance.choice((0, chance.random(), 1)) for _ in range(status.remaining)]
    moments = sorted(time.now + int(share * status.wait) for share in shares)
    for moment in moments:
        time.now = moment
        assert ask().allowed


def test_a_request_rejected_by_one_limit_counts_against_none(counter: HitCounter, time: Time) -> None:
    wide, narrow = Hit(Limit("token", 5, 60_000), "1"), Hit(Limit("exports", 2, 60_000), "1")
    told = [[(status.allowed, status.remaining) for status in counter.count([wide, narrow])] for _ in range(4)]
    assert told == [[(True, 4), (True, 1)], [(True, 3), (True, 0)], [(True, 3), (False, 0)], [(True, 3), (False, 0)]]
    assert counter.count([wide])[0].remaining == 2
    time.now += 180_000
    assert [status.remaining for status in counter.count([narrow, wide])] == [1, 4]


def test_an_uncounted_request_no_longer_counts(counter: HitCounter) -> None:
    wide, narrow = Hit(Limit("token", 5, 60_000), "1"), Hit(Limit("exports", 2, 60_000), "1")
    for _ in range(4):
        assert [status.remaining for status in counter.count([wide, narrow])] == [4, 1]
        counter.uncount([wide, narrow])
    counter.count([wide])
    for _ in range(3):  # more than were counted, and of an unused key
        counter.uncount([wide, Hit(narrow.limit, "2")])
    assert [status.remaining for status in counter.count([wide, narrow])] == [4, 1]


@given(amount=st.integers(1, 12), before=st.integers(0, 14), numbers=st.lists(st.integers(0, 2), max_size=20))
@ONE_FIXTURE_FOR_ALL
def test_requests_that_arrive_together_are_counted_as_one_after_the_other(
    counter: HitCounter, time: Time, amount: int, before: int, numbers: list[int]
) -> None:
    time.now += 600_000  # the requests of other examples no longer count
    wide, narrow = Limit("token", 9, 60_000), Limit("exports", amount, 60_000)

    def requests(name: str) -> list[list[Hit]]:
        one, other = Hit(wide, name), Hit(narrow, name)
        return [[[one], [one, other], [other]][number] for number in sorted(numbers)]

    model = MemoryHitCounter(time)
    for each, name in ((counter, "together"), (model, "alone")):
        for _ in range(before):
            each.count([Hit(narrow, name)])
    time.now += 70_000
    expected = [model.count(hits) for hits in requests("alone")]
    if isinstance(counter, SharedHitCounter):
        assert counter.count_all(requests("together")) == expected
    else:
        assert [counter.count(hits) for hits in requests("together")] == expected


def test_keys_are_independent(counter: HitCounter) -> None:
    limits = Limit("token", 1, 60_000), Limit("address", 1, 60_000)
    for limit, whose in itertools.product(limits, ("1", "11", "1 ", "192.0.2.1", "2001:db8::/64", "")):
        (status,) = counter.count([Hit(limit, whose)])
        assert status.allowed, (limit, whose)


def test_a_restarted_clock_locks_no_client_out(counter: HitCounter, time: Time) -> None:
    ask = Requests(counter, time, 2, 60_000)
    assert [ask().allowed for _ in range(3)] == [True, True, False]
    time.now -= AHEAD // 2  # another process counted a little later
    assert not ask().allowed
    time.now = 3000  # the machine was restarted
    assert [ask().allowed for _ in range(3)] == [True, True, False]


def test_a_lowered_limit_applies_at_once(counter: HitCounter, time: Time) -> None:
    ask = Requests(counter, time, 10, 60_000)
    for _ in range(10):
        ask()
    ask.limit = Limit("token", 2, 60_000)
    (lowered,) = counter.count([Hit(ask.limit, ask.hit.subject)])
    assert (lowered.allowed, lowered.remaining) == (False, 0)
    time.now += lowered.wait
    (later,) = counter.count([Hit(ask.limit, ask.hit.subject)])
    assert later.allowed


def test_the_largest_rate_that_can_be_set_is_counted(counter: HitCounter, time: Time) -> None:
    ask = Requests(counter, time, 999_999_999, 86_400_000)
    assert ask().remaining == 999_999_998
    assert ask(86_400_000).remaining == 999_999_998
    assert ask(86_399_999).remaining == 999_999_997


def test_purge_deletes_the_counts_of_past_windows(counter: HitCounter, time: Time) -> None:
    old, young = Requests(counter, time, 1, 1000), Requests(counter, time, 1, 60_000)
    assert old().allowed
    assert young().allowed
    time.now += 2000
    counter.purge()
    assert not young().allowed
    assert old().allowed


def test_purge_keeps_the_count_of_a_key_that_was_used_in_the_window_before(counter: HitCounter, time: Time) -> None:
    ask = Requests(counter, time, 3, 1000)
    assert ask().allowed
    assert [ask(pause).remaining for pause in (1000, 0, 0)] == [2, 1, 0]
    time.now += 1000  # two windows after the first request
    counter.purge()
    assert ask().remaining == 0


def test_many_addresses_use_bounded_memory(time: Time) -> None:
    counter = MemoryHitCounter(time, max_keys=100)
    for number in range(1000):
        counter.count([Hit(Limit("address", 5, 60_000), str(number))])
    assert len(counter) == 100
    time.now += 120_000
    counter.purge()
    assert len(counter) == 0
