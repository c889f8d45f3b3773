"""The abuse rules on the traffic of `fixtures/traffic/`: attacks are revoked soon, honest clients never."""

from collections import deque

import pytest

from musicsvc.clock import SECOND
from musicsvc.config import Abuse
from musicsvc.store.abuse import earlier_reads, rules
from musicsvc.store.activity.calls import Entry
from tests.support.traffic import Bucket, FixedWindow, Limit, Profile, SlidingWindow, profiles

RULES = Abuse()
SOON = 60 * SECOND
LIMITS = {"ours": SlidingWindow, "fixed windows": FixedWindow, "a bucket": Bucket}
HONEST, ATTACKS = profiles("honest"), profiles("attacks")


def evaluated(entries: list[Entry]) -> rules.Violation | None:
    """Return the violation in all calls of an account; the log holds no other reads."""
    known = earlier_reads.read_before_in(entries, entries)
    return rules.evaluate(earlier_reads.without(entries, known), RULES)


def refusals_passed(entries: list[Entry]) -> int | None:
    """Return the time at which the documented threshold is exceeded: 100 refusals in 300 s without a pause."""
    run: deque[int] = deque()
    back_at = 0
    for entry in entries:
        if entry.retry_after is None:
            continue
        if entry.at >= back_at:
            run.clear()
        run.append(entry.at)
        while run[0] <= entry.at - 300 * SECOND:
            run.popleft()
        if len(run) == 100:
            return entry.at
        back_at = entry.at + entry.retry_after * SECOND
    return None


def probes_passed(entries: list[Entry]) -> int | None:
    """Return the time at which 50 different resources were denied in 60 s with under 10 % successes."""
    seen = [entry for entry in entries if entry.status < 429 and (entry.status not in {403, 404} or entry.resource)]
    for entry in seen:
        window = [each for each in seen if entry.at - 60 * SECOND < each.at <= entry.at]
        denied = {each.resource for each in window if each.status in {403, 404}}
        if len(denied) >= 50 and sum(each.status < 400 for each in window) * 10 < len(window):
            return entry.at
    return None


def test_there_are_enough_profiles_with_name_and_description() -> None:
    assert len(HONEST) >= 10
    assert len(ATTACKS) >= 10
    assert len({profile.name for profile in HONEST + ATTACKS}) == len(HONEST + ATTACKS)
    assert all(profile.about.endswith(".") for profile in HONEST + ATTACKS)
    assert not any(profile.rule for profile in HONEST)


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("profile", HONEST, ids=lambda each: each.name)
def test_an_honest_client_is_never_revoked(profile: Profile, limit: type[Limit]) -> None:
    assert evaluated(profile.entries(limit())) is None


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("profile", ATTACKS, ids=lambda each: each.name)
def test_an_attack_is_revoked_within_a_minute_of_the_threshold(profile: Profile, limit: type[Limit]) -> None:
    entries = profile.entries(limit())
    violation = evaluated(entries)
    assert violation is not None
    assert violation.rule == profile.rule
    passed = probes_passed(entries) if violation.rule == "probing" else refusals_passed(entries)
    assert passed is not None
    assert passed <= violation.at <= passed + SOON


def test_a_plain_threshold_would_revoke_obedient_clients() -> None:
    to_the_letter = {p.name for p in HONEST if refusals_passed(p.entries(SlidingWindow()))}
    assert to_the_letter == {"eight threads"}
