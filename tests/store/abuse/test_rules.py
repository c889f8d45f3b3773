"""The abuse rules: each threshold, and properties."""

from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsvc.clock import SECOND
from musicsvc.config import Abuse
from musicsvc.store.abuse import rules as abuse_rules
from musicsvc.store.abuse.enforcement import TokenStatus
from musicsvc.store.abuse.probing_rule import ProbeFigures
from musicsvc.store.abuse.rate_limit_rule import RefusalFigures
from musicsvc.store.abuse.rules import Evaluation, Violation
from musicsvc.store.activity.calls import Entry
from tests.support.examples import examples
from tests.support.traffic import BEGAN, Bucket, Client, FixedWindow, Limit, Profile, SlidingWindow

RULES = Abuse()
TRACK, PLAYLIST = "/api/v1/tracks/{id}", "/api/v1/playlists/{id}"
OWN_STEPS: list[dict[str, Any]] = [
    {"request": f"GET {TRACK}"},
    {"request": "GET /api/v1/albums"},
    {"request": "POST /api/v1/plays", "status": 201},
    {"request": f"GET {PLAYLIST}", "ids": "malformed", "status": 404},
]


def call(at: float, status: int = 200, resource: str | None = None, **more: Any) -> Entry:
    told = more.pop("retry_after", 30) if status == 429 else None
    moment = BEGAN + round(at * SECOND)
    private = bool(resource)
    entry = Entry(moment, f"r{at}", 3, 7, "127.0.0.1", "GET", TRACK, resource, status, told, 1.0, 10, True, private)
    return entry._replace(**more)


def refusals(seconds: float, *, every: float, start: float = 0, **more: Any) -> list[Entry]:
    return [call(start + number * every, 429, **more) for number in range(round(seconds / every))]


def probes(amount: int, *, every: float = 1.0, start: float = 0) -> list[Entry]:
    return [call(start + number * every, 404, f"playlists/{number}") for number in range(amount)]


def evaluated(*calls: list[Entry], rules: Abuse = RULES) -> Violation | None:
    return abuse_rules.evaluate(sorted(chain(*calls), key=lambda entry: entry.at), rules)


def test_a_hundred_refusals_without_a_pause_are_too_many_and_the_reason_says_so() -> None:
    violation = evaluated(refusals(40, every=0.3))
    assert violation is not None
    assert violation.rule == "excessive"
    assert violation.reason == (
        "abuse: 100 requests refused with 429 within 30 seconds, without the pause that Retry-After asked for"
    )
    assert (violation.since, violation.at) == (BEGAN, BEGAN + round(29.7 * SECOND))
    assert evaluated(refusals(29.5, every=0.3)) is None


def test_a_token_without_calls_has_no_figures() -> None:
    found = Evaluation(RULES)
    assert (found.refused, found.probed) == (RefusalFigures(0, 0, 0), ProbeFigures(0, 0, 0, 0))


def test_refusals_are_counted_over_five_minutes() -> None:
    assert evaluated(refusals(900, every=2.9, retry_after=600)) is not None
    assert evaluated(refusals(900, every=3.1, retry_after=600)) is None


def test_an_obeyed_pause_resets_the_count() -> None:
    run = refusals(9.9, every=0.1, retry_after=20)
    again = [entry for start in (30, 60, 90) for entry in refusals(9.9, every=0.1, start=start, retry_after=20)]
    assert evaluated(run, again) is None
    too_early = [entry for start in (20, 40, 60) for entry in refusals(9.9, every=0.1, start=start, retry_after=20)]
    assert evaluated(run, too_early) is not None


def test_a_pause_excuses_requests_in_flight_at_the_limit() -> None:
    assert evaluated(refusals(0.99, every=0.01), refusals(0.99, every=0.01, start=60)) is None
    assert evaluated(refusals(1.01, every=0.01)) is not None


def test_a_pause_is_over_in_its_last_microsecond() -> None:
    def burst(at: float) -> list[Entry]:
        return [call(at, 429, retry_after=10)] * 60

    assert evaluated(burst(0), burst(9)) is None
    assert evaluated(burst(0), burst(8.999_999)) is not None


def test_one_client_in_ten_refusals_may_pause_for_itself() -> None:
    def clients(many: int) -> list[Entry]:
        return [call(number * 0.1 + turn * 2.1, 429, retry_after=2) for number in range(many) for turn in range(100)]

    assert evaluated(clients(10)) is None
    assert evaluated(clients(20)) is not None
    assert evaluated(clients(20), rules=Abuse(refusals=200)) is None


def test_a_refusal_without_retry_after_asks_for_a_second() -> None:
    assert evaluated([call(at * 1.1, 429, retry_after=None) for at in range(300)]) is None
    assert evaluated([call(at * 0.05, 429, retry_after=None) for at in range(300)]) is not None


def test_paging_adds_to_the_reason_and_is_not_a_rule() -> None:
    pages = [call(at * 0.2, route="/api/v1/albums") for at in range(300)]
    assert evaluated(pages) is None
    violation = evaluated(pages, refusals(20, every=0.1, start=60))
    assert violation is not None
    assert violation.rule == "scraping"
    assert violation.reason.endswith("Retry-After asked for, while paging through /api/v1/albums")
    single = [call(at * 0.2, resource=f"tracks/{at}") for at in range(320)]
    assert (evaluated(pages, single, refusals(20, every=0.1, start=60)) or violation).rule == "excessive"


def test_a_list_whose_pages_were_refused_was_not_paged_through() -> None:
    some = [call(number / 10, route="/api/v1/albums") for number in range(abuse_rules.PAGES - 1)]
    violation = evaluated(some, refusals(40, every=0.3, start=5, route="/api/v1/albums"))
    assert violation is not None
    assert violation.rule == "excessive"


def test_fifty_different_resources_in_a_minute_are_too_many_and_the_reason_says_so() -> None:
    violation = evaluated(probes(60))
    assert violation is not None
    assert violation == Violation(
        "probing",
        BEGAN,
        BEGAN + 49 * SECOND,
        "abuse: 50 different resources that belong to others or do not exist, within 49 seconds,"
        " 0 of 50 calls successful",
    )
    assert evaluated(probes(49)) is None
    assert evaluated(probes(500, every=60 / 49)) is None
    assert evaluated(probes(500, every=60 / 51)) is not None


def test_the_same_resource_counts_once() -> None:
    assert evaluated([entry._replace(resource="playlists/1") for entry in probes(60)]) is None
    assert evaluated([entry._replace(status=403) for entry in probes(30)], probes(30, start=31)) is None


def test_a_tenth_of_successes_is_no_violation() -> None:
    successes = [call(0.5 + at) for at in range(6)]
    assert evaluated(probes(50), successes) is None
    assert evaluated(probes(55), successes) is not None
    assert evaluated(probes(60), rules=Abuse(probe_success_percent=0)) is None


@pytest.mark.parametrize(
    "harmless",
    [
        {"resource": None},  # malformed ids, unknown paths, no API access
        {"status": 401},
        {"status": 422},
        {"status": 500},
        {"limits_apply": False},
        {"private": False},  # an unknown or deleted id of the catalog
    ],
)
def test_what_does_not_count(harmless: dict[str, Any]) -> None:
    assert evaluated([entry._replace(**harmless) for entry in probes(200, every=0.1)]) is None


def test_what_does_not_count_does_not_dilute_either() -> None:
    noise = [call(0.3 + at * 0.2, status) for at in range(200) for status in (404, 429, 499, 503)]
    messages = [call(at, method="POST", route="/mcp") for at in range(60)]  # of an assistant, whose tools are refused
    assert evaluated(probes(60), [entry._replace(retry_after=1) for entry in noise], messages) is not None


def test_an_evaluation_keeps_the_figures_nearest_to_the_thresholds() -> None:
    evaluation = Evaluation(RULES)
    for entry in [*probes(31, every=0.1), *refusals(20, every=0.4, start=100)]:
        assert evaluation.add(entry) is None
    assert (evaluation.probed.resources, evaluation.probed.calls, evaluation.probed.successes) == (31, 31, 0)
    assert (evaluation.refused.refused, evaluation.refused.early) == (50, 40)


limits = st.builds(
    lambda kind, amount, seconds: kind(amount, seconds),
    st.sampled_from([SlidingWindow, FixedWindow, Bucket]),
    st.integers(3, 120),
    st.integers(5, 90),
)


def clients(on_429: st.SearchStrategy[float], steps: list[dict[str, Any]]) -> st.SearchStrategy[Client]:
    return st.builds(
        Client,
        steps=st.lists(st.sampled_from(steps), min_size=1, max_size=4),
        workers=st.integers(1, 3),
        rounds=st.integers(1, 60),
        rest=st.sampled_from([0.0, 0.5, 30.0]),
        start=st.floats(0, 60),
        pace=st.floats(0, 2),
        jitter=st.floats(0, 1),
        on_429=on_429,
        gives_up=st.booleans(),
    )


@given(st.lists(clients(st.just(1.0), OWN_STEPS), min_size=1, max_size=3), limits)
def test_an_obedient_client_with_own_resources_never_violates_a_rule(sharing: list[Client], limit: Limit) -> None:
    assert abuse_rules.evaluate(Profile("obedient", "", sharing).entries(limit), RULES) is None


ANY_STEPS = [*OWN_STEPS, {"request": f"GET {PLAYLIST}", "ids": "new", "status": 404, "times": 10}]
LOW = Abuse(refusals=10, refusal_seconds=60, probes=8, probe_seconds=20)


@settings(max_examples=examples(60))
@given(clients(st.floats(0, 1), ANY_STEPS), limits, st.lists(st.floats(0, 1), max_size=8))
def test_batches_lead_to_the_same_violation(client: Client, limit: Limit, cuts: list[float]) -> None:
    entries = Profile("anybody", "", [client]).entries(limit)
    violation = abuse_rules.evaluate(entries, LOW)
    evaluation = Evaluation(LOW)
    decisive = next((number for number, entry in enumerate(entries) if evaluation.add(entry)), len(entries))
    for cut in cuts:
        known = round(cut * len(entries))
        assert abuse_rules.evaluate(entries[:known], LOW) == (violation if known > decisive else None)


@pytest.mark.parametrize(("reset_at", "first"), [(0, 100), (99, 100), (100, 101), (500, 501)])
def test_calls_count_from_the_making_of_a_token_or_after_its_last_reset(reset_at: int, first: int) -> None:
    status = TokenStatus(1, 1, "ann@label.test", 100, None, None, reset_at)
    assert [status.counts(call(0)._replace(account_id=1, at=at)) for at in (first - 1, first)] == [False, True]
