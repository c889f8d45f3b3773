"""The sums of the activity log equal a recount of its calls, whatever was written, deleted and summed when."""

import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from peewee import fn

from musicsvc.clock import HOUR
from musicsvc.config import Settings
from musicsvc.networks import client_network
from musicsvc.store.activity import calls, sums, top
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.top import DIMENSIONS, Window
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import bound
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Activity, ActivitySum
from musicsvc.store.schema import schema

NOW = 1_772_323_200_000_000  # 2026-03-01 00:00
ROUTES = ("/api/v1/tracks/{id}", "/api/v1/playlists/{id}", "/insights", None)
WHOLE = Window(NOW // HOUR - 31, NOW // HOUR + 31)
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


@pytest.mark.slow
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


def one(**values: Any) -> Entry:
    """Return a call at NOW."""
    plain = drawn(random.Random(1), NOW, 0)
    return plain._replace(at=NOW, request_id="r", address="203.0.113.9", status=200, calls=1, **values)


def write(log: Log, *entries: Entry) -> None:
    log.write(lambda: calls.add(entries)).result()


def objects(log: Log, window: Window, by: str = "token") -> list[tuple[str, int | str]]:
    found = top.find(log, by, window, Settings(), limit=9).callers
    return [(each.key, each.objects) for each in found]


def test_objects_are_exact_in_an_hour_and_up_to_a_thousand_in_more(log: Log) -> None:
    """The token 3 has 1,003 objects in an hour; 7 has 600 and other 401, of which one is the same; 11 has 600 twice."""
    hour = NOW // HOUR
    many = [one(token_id=3, resource=f"tracks/{n}") for n in range(1_003)]
    many += [one(token_id=token, resource=f"tracks/{n}") for token in (7, 11) for n in range(600)]
    late = [one(token_id=7, resource=f"tracks/{n}")._replace(at=NOW + HOUR) for n in range(599, 1_000)]
    late += [one(token_id=11, resource=f"tracks/{n}")._replace(at=NOW + HOUR) for n in range(600)]
    write(log, *many, *late)

    assert objects(log, Window(hour, hour + 1)) == [("3", 1_003), ("11", 600), ("7", 600)]
    assert objects(log, Window(hour, hour + 2)) == [("11", 600), ("3", "1,000+"), ("7", 1_000)]
    assert objects(log, Window(hour, hour + 24)) == [("11", 600), ("3", "1,000+"), ("7", 1_000)]
    write(log, one(token_id=7, resource="tracks/5000"))
    assert dict(objects(log, Window(hour, hour + 2)))["7"] == "1,000+"
    assert objects(log, Window(hour, hour + 1), "route")[0][1] == 1_004


def test_a_flood_of_addresses_becomes_one_sum_without_the_busiest(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "MOST_ADDRESSES", 30)
    monkeypatch.setattr(sums, "SLACK", 5)
    hour, flood = NOW // HOUR, [one(token_id=None)._replace(address=f"10.0.{n % 7}.{n}") for n in range(200)]
    scraper = [one(token_id=3, resource=f"tracks/{n}")._replace(address="198.51.100.7") for n in range(9)]
    for place in range(0, 200, 20):
        write(log, *flood[place : place + 20], *scraper[place // 20 : place // 20 + 1])
        log.write(sums.add_new).result()

    for window in Window(hour, hour + 1), Window(hour, hour + 24):
        found = top.find(log, "address", window, Settings(), limit=99).callers
        assert sum(each.calls for each in found) == 209
        assert 30 <= len(found) <= 36
        assert found[0].key == sums.OTHERS
        assert (found[1].key, found[1].calls, found[1].objects) == ("198.51.100.7", 9, 9)


def test_a_network_is_one_address_whose_calls_are_found(log: Log) -> None:
    inside = ["2001:db8:5::1", "2001:db8:5:0:1::", "2001:db8:5:0:1:2:3:4"]
    write(log, *[one(token_id=3)._replace(address=each) for each in (*inside, "2001:db8:5:1::1", "2001:db8:50::1")])

    (network, *_) = top.find(log, "address", Window(NOW // HOUR, NOW // HOUR + 1), Settings(), limit=9).callers
    assert (network.key, network.calls) == ("2001:db8:5::/64", 3)
    found = log.read(lambda: calls.find(calls.Filter(address=network.key), limit=9)).result()
    assert [each.address for each in found] == inside


def test_a_failed_transaction_leaves_calls_that_are_summed_later(log: Log) -> None:
    write(log, *[one(token_id=3) for _ in range(5)])

    def fail() -> None:
        sums.add_new()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        log.write(fail).result()
    for _ in range(2):
        log.write(sums.add_new).result()
    assert [each.calls for each in top.find(log, "token", WHOLE, Settings(), limit=9).callers] == [5]


def test_nodes_that_write_and_sum_at_the_same_time_lose_and_repeat_nothing(store: Store, log: Log) -> None:
    nodes = [activity_log.build(store.url) for _ in range(3)]

    def work(node: Log, token: int) -> None:
        for number in range(30):
            write(
                node, *[one(token_id=token, resource=f"tracks/{number}"), one(token_id=99, resource=f"tracks/{token}")]
            )
            node.write(sums.advance).result()

    for node in nodes:
        node.prepare()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, nodes, (3, 7, 11)))
    for node in nodes:
        node.close()

    found = top.find(log, "token", WHOLE, Settings(), limit=9).callers
    assert [(each.key, each.calls, each.objects) for each in found] == [
        ("99", 90, 3), ("11", 30, 30), ("3", 30, 30), ("7", 30, 30),
    ]  # fmt: skip


def test_calls_of_before_the_sums_are_summed_newest_first(
    new_database: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a version without sums; then, beside the new program, an old one that writes."""
    monkeypatch.setattr(sums, "SLICE", 40)
    only_first = tmp_path / "old"
    only_first.mkdir()
    shutil.copy(activity_log.MIGRATIONS / "0001_baseline.py", only_first)
    draw = random.Random(5)
    old = sorted((drawn(draw, NOW, number) for number in range(170)), key=attrgetter("at"))
    url = new_database(migrated=False)
    with schema.migrating(url) as opened:
        activity_log.migrate(opened, only_first)
        with bound(opened):
            bulk.insert(Activity, Entry._fields, old)
        assert activity_log.migrate(opened) == ["0002_sums"]
        with bound(opened), opened.atomic():
            assert sums.unsummed() == old[-1].at
            bulk.insert(Activity, Entry._fields, old[:3])  # by an old program
            sums.advance()
            sums.advance()
            assert sums.unsummed() == old[-41].at
            while sums.advance():
                pass
            assert sums.unsummed() is None
            total = ActivitySum.select(fn.SUM(ActivitySum.calls))
            for dimension in range(4):
                for hours in (1, 24):
                    mine = ActivitySum.dimension == dimension, ActivitySum.hours == hours
                    assert total.where(*mine).scalar() == sum(each.calls for each in [*old, *old[:3]])
