"""The sums of the activity log equal a recount of its calls, whatever was written, deleted and summed when."""

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from musicsvc.clock import HOUR
from musicsvc.config import Settings
from musicsvc.networks import client_network
from musicsvc.store.activity import calls, sums, top
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.top import DIMENSIONS, Window
from musicsvc.store.engine.store import Store

NOW = 1_772_323_200_000_000  # 2026-03-01 00:00
ROUTES = ("/api/v1/tracks/{id}", "/api/v1/playlists/{id}", "/insights", None)
ADDRESSES = ("203.0.113.9", "198.51.100.7", "2001:db8::1", "2001:db8::2")


@pytest.fixture
def log(store: Store) -> Iterator[Log]:
    with activity_log.build(store.url) as opened:
        opened.prepare()
        yield opened


def drawn(draw: random.Random, at: int, number: int) -> Entry:
    """Return a call in the hours before and after `at`, as a client, a stranger, or a count of a flood."""
    token = draw.choice([None, 3, 7, 11])
    route = draw.choice(ROUTES)
    resource = f"tracks/{draw.randint(1, 40)}" if route and "{id}" in route else None
    is_count = token is None and draw.random() < 0.1
    return Entry(
        at=at + draw.randint(-30 * HOUR, 30 * HOUR),
        request_id="" if is_count else f"r-{number}",
        account_id=token,
        token_id=token,
        address=draw.choice(ADDRESSES),
        method="" if is_count else "GET",
        route=None if is_count else route,
        resource=None if is_count else resource,
        status=draw.choice([200, 200, 304, 401, 403, 404, 429, 500]),
        retry_after=None,
        milliseconds=1.5,
        size=80,
        limits_apply=draw.random() < 0.8 and not is_count,
        private=resource is not None and draw.random() < 0.5,
        calls=draw.randint(2, 900) if is_count else 1,
    )


def keys(entry: Entry) -> tuple[str, str, str, str]:
    token = "" if entry.token_id is None else str(entry.token_id)
    return token, client_network(entry.address), entry.route or "", str(entry.status)


def recounted(entries: list[Entry], window: Window, by: str) -> dict[str, tuple[Any, ...]]:
    """Sum the calls of a window in the plainest way."""
    place = DIMENSIONS.index(by)
    found: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if window.start <= entry.at // HOUR < window.end:
            found[keys(entry)[place]].append(entry)
    return {
        key: (
            sum(each.calls for each in mine),
            {status: sum(each.calls for each in mine if each.status == status) for status in sums.REFUSED},
            len({each.resource for each in mine} - {None}),
            min(each.at for each in mine),
            max(each.at for each in mine),
            max(counted(mine, by, hour) for hour in {each.at // HOUR for each in mine}),
        )
        for key, mine in found.items()
    }


def counted(entries: list[Entry], by: str, hour: int) -> int:
    """Return how many calls of an hour count toward the limit of a token or of an address."""
    mine = [each for each in entries if each.at // HOUR == hour and each.limits_apply and each.status != 429]
    if by == "token":
        return sum(each.token_id is not None for each in mine)
    return sum(each.token_id is None and (each.route or "").startswith("/api/") for each in mine)


def summed(log: Log, window: Window, by: str) -> dict[str, tuple[Any, ...]]:
    settings = Settings.model_validate({"limits": {"token": "1/hour", "address": "1/hour"}})
    found = top.find(log, by, window, settings, limit=1_000)
    assert found.total == len(found.callers)
    return {
        each.key: (each.calls, each.refused, each.objects, each.first_at, each.last_at, (each.share or 0) // 100)
        for each in found.callers
    }


def check(log: Log, entries: list[Entry], kept: int, draw: random.Random) -> None:
    """Compare windows from the hour `kept` on, before which calls were deleted."""
    middle = NOW // HOUR
    start = draw.randint(middle - 30, middle + 20)
    for first, end in (middle - 31, middle + 31), (middle - 24, middle + 24), (start, start + draw.randint(1, 50)):
        window = Window(max(first, kept), max(end, kept + 1))
        for by in DIMENSIONS:
            expected = recounted(entries, window, by)
            if by not in {"token", "address"}:
                expected = {key: (*row[:-1], 0) for key, row in expected.items()}
            if by == "token" and "" in expected:
                expected[""] = (*expected[""][:-1], 0)
            assert summed(log, window, by) == expected, (window, by)


@pytest.mark.parametrize("seed", range(3))
def test_sums_equal_a_recount_over_the_calls(log: Log, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(sums, "SLICE", 37)
    draw = random.Random(seed)
    entries: list[Entry] = []
    kept = 0
    for batch in range(8):
        new = [drawn(draw, NOW, len(entries) + number) for number in range(draw.randint(1, 90))]
        log.write(lambda new=new: calls.add(new)).result()  # type: ignore[misc]
        entries += new
        act = draw.choice(["advance", "check", "back", "prune"]) if batch else "check"
        if act == "advance":
            log.write(sums.advance).result()
        elif act == "back":
            instant = NOW + draw.randint(-5 * HOUR, 25 * HOUR)
            log.write(lambda instant=instant: calls.delete_after(instant)).result()  # type: ignore[misc]
            entries = [each for each in entries if each.at <= instant]
        elif act == "prune":
            before = NOW - draw.randint(8, 30) * HOUR
            while log.write(lambda before=before: calls.prune(before, limit=3)).result():  # type: ignore[misc]
                pass
            entries, kept = [each for each in entries if each.at >= before], max(kept, before // HOUR)
        else:
            check(log, entries, kept, draw)
    check(log, entries, kept, draw)
