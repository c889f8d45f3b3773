"""Daily play counts of an old database, which had three columns as their key."""

from collections.abc import Callable

import pytest

from musicsvc.store import opening
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import daily
from musicsvc.store.plays.rollups import reader
from musicsvc.store.schema import schema

ROWS = {  # (day, kind, id): plays
    (20_000, 1, 7): 3,
    (20_000, 1, 8): 4,
    (20_000, 2, 7): 5,
    (20_000, 3, 1): 6,
    (20_031, 1, 7): 8,
    (0, 3, 2): 9,
    (20_031, 3, 1 << 38): 10,
}
ROW = "INSERT INTO play_day (day, kind, subject, plays, listeners, histogram) VALUES ({}, {}, {}, {}, {}, {})"


def test_daily_counts_keep_their_days_kinds_and_ids(
    old: Callable[[str, str], str], request: pytest.FixtureRequest
) -> None:
    on_postgres = request.config.getoption("--store") == "postgres"

    def blob(first: int) -> str:
        return rf"'\x{first:02x}000000'::bytea" if on_postgres else f"x'{first:02x}000000'"

    rows = [ROW.format(*key, plays, blob(plays), blob(plays + 1)) for key, plays in ROWS.items()]
    url = old("0025_days_of_months", ";".join(rows))
    reported: list[float] = []

    assert schema.upgrade(url, on_progress=lambda done, _: reported.append(done))[0] == "0026_daily_keys"

    assert [done for done in reported if 0 < done < 1] == [1 / 3, 2 / 3]
    with opening.connect(url) as store:
        stored = store.read(
            lambda: fetch("SELECT key, plays, listeners, histogram FROM play_day ORDER BY key")
        ).result()
        assert {daily.parts(key): (plays, people[0], packed[0]) for key, plays, people, packed in stored} == {
            key: (plays, plays, plays + 1) for key, plays in ROWS.items()
        }
        assert [daily.parts(key) for key, *_ in stored] == sorted(ROWS)
        assert store.read(lambda: reader.counts_by_day(1, 7, range(20_000, 20_032))).result() == {
            20_000: (3, 1),
            20_031: (8, 1),
        }
        assert store.read(schema.problems).result() == []
