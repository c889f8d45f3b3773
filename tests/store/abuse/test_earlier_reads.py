"""Denials of resources that the account has read before, looked up on an index of the log."""

from functools import partial
from typing import Any

from musicsvc.clock import DAY, SECOND
from musicsvc.store.abuse import earlier_reads
from musicsvc.store.abuse.earlier_reads import Denial
from musicsvc.store.activity import calls
from musicsvc.store.activity.calls import Entry
from musicsvc.store.activity.log import Log
from musicsvc.store.engine.sql import current, is_sqlite

KEEP_DAYS = 7
NOW = 100 * DAY
PLAYLIST, TRACK = "/api/v1/playlists/{id}", "/api/v1/tracks/{id}"
INSIGHTS = "/api/v1/producer-intelligence/insights/tracks/{trackId}"


def call(resource: str, status: int, at: int = NOW, **more: Any) -> Entry:
    private = not resource.startswith("tracks/") or more.get("route") == INSIGHTS
    entry = Entry(at, f"{resource} {at}", 3, 7, "", "GET", PLAYLIST, resource, status, None, 1.0, 10, True, private)
    return entry._replace(**more)


def test_only_successful_reads_of_the_account_in_the_days_before_count(log: Log) -> None:
    reads = [
        call("playlists/1", 200, NOW - DAY, token_id=8),  # by another token of the account
        call("playlists/2", 304, NOW - KEEP_DAYS * DAY),
        call("playlists/3", 200, NOW - KEEP_DAYS * DAY - 1),
        call("playlists/4", 200, NOW - DAY, account_id=4),
        call("playlists/5", 404, NOW - DAY),
        call("playlists/6", 200, NOW + SECOND),
        call("tracks/7", 200, NOW - DAY, route=TRACK),
        call("tracks/8", 200, NOW - DAY, route=INSIGHTS),
        call("conversations/9", 201, NOW - 2 * DAY),
        call("conversations/9", 200, NOW - DAY),
    ]
    denied = [call(f"playlists/{number}", 404) for number in range(1, 7)]
    denied += [call("tracks/7", 403, route=INSIGHTS), call("tracks/8", 403, route=INSIGHTS)]
    denied += [call("conversations/9", 404), call("conversations/9", 404, NOW - 3 * DAY)]
    log.write(partial(calls.add, reads)).result()

    known = log.read(partial(earlier_reads.read_before, [*denied, *reads], KEEP_DAYS)).result()

    expected = [("playlists/1", NOW), ("playlists/2", NOW), ("tracks/8", NOW), ("conversations/9", NOW)]
    assert named(known) == sorted(expected)
    counted = list(earlier_reads.without([*reads, *denied], known))
    assert counted == reads + [entry for entry in denied if (entry.resource, entry.at) not in expected]
    assert log.read(partial(earlier_reads.read_before, reads[:4], KEEP_DAYS)).result() == set()


def test_unwritten_reads_count_too() -> None:
    unwritten = [
        call("playlists/1", 200, NOW - 2, token_id=8),
        call("playlists/1", 200, NOW + 5),
        call("playlists/2", 200, NOW + 5),
        call("playlists/3", 200, NOW - 2, account_id=4),
        call("tracks/4", 200, NOW - 2, route=TRACK),
    ]
    denied = [call(f"playlists/{number}", 404) for number in (1, 2, 3)] + [call("tracks/4", 403, route=INSIGHTS)]
    assert named(earlier_reads.read_before_in(unwritten, denied)) == [("playlists/1", NOW)]


def named(known: set[Denial]) -> list[tuple[str | None, int]]:
    return sorted((denial.resource or "", denial.at) for denial in known)


def test_each_denial_costs_a_search_in_an_index_however_large_the_log_is(log: Log) -> None:
    reads = [call(f"playlists/{number % 10}", 200, NOW - number) for number in range(1, 3_000)]
    log.write(partial(calls.add, reads)).result()

    def plan() -> list[str]:
        query = earlier_reads.query([Denial(3, "playlists/1", NOW)], KEEP_DAYS)
        text, values = current().get_sql_context().sql(query).query()
        rows = current().execute_sql(f"EXPLAIN {'QUERY PLAN ' if is_sqlite() else ''}{text}", values).fetchall()
        return [row[-1] for row in rows]

    log.write(lambda: current().execute_sql("ANALYZE activity") and None).result()
    lines = log.read(plan).result()
    assert any("activity_read" in line for line in lines), lines
    assert not any("SCAN t1" in line or "Seq Scan" in line for line in lines), lines
