"""Plays of an old database, in which the time of the report was not stored."""

from collections.abc import Callable

import pytest

from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.sql import fetch
from musicsvc.store.plays import ingest, verify
from musicsvc.store.plays.ingest import ReportedPlay
from musicsvc.store.schema import schema
from tests.conftest import NOW

ROWS = """
INSERT INTO account (id, email, email_key, display_name, api_access, created_at) VALUES
    (7, 'ann@label.test', 'ann@label.test', 'Ann', '1', 1);
INSERT INTO track (id, name, duration, currency, licensing_type, exclusive_status, fingerprint_status, created_at)
    VALUES (1, 'Rag', 1, 'USD', 'both', 'sold', 'failed', 4);
INSERT INTO listener (id, key) VALUES (1, 'account:7'), (2, 'opaque:a');
INSERT INTO play (slot, track_id, listener_id, client_key, played_at, reporter, import_id) VALUES
    (10, 1, 1, {none}, 300000000, 7, NULL), (10, 1, 2, {none}, 300000001, 7, NULL), (11, 1, 2, {none}, 330000000, 0, 5);
INSERT INTO track_plays (track_id, plays) VALUES (1, 3)
"""
PLAYS = "SELECT slot, listener_id, reporter, import_id, reported_at FROM play ORDER BY slot, listener_id"


def test_the_time_of_earlier_reports_is_unknown_and_that_of_later_ones_is_stored(
    old: Callable[[str, str], str], request: pytest.FixtureRequest
) -> None:
    none = "''::bytea" if request.config.getoption("--store") == "postgres" else "x''"
    url = old("0026_daily_keys", ROWS.format(none=none))
    assert schema.upgrade(url)[0] == "0027_reported_at"

    def report() -> int:
        user = users.by_email("ann@label.test")
        actor = tokens.identify(tokens.digest(tokens.create(user, "test", now=NOW)[1]))
        assert actor is not None
        return ingest.report([ReportedPlay(1, NOW - 30_000_000)], now=NOW, actor=actor).accepted

    with opening.connect(url) as store:
        before = [(10, 1, 7, None, None), (10, 2, 7, None, None), (11, 2, 0, 5, None)]
        assert [tuple(row) for row in store.read(lambda: fetch(PLAYS)).result()] == before
        verify.run(store, check=False, on_progress=lambda *_: None)
        assert store.write(report).result() == 1
        after = [*before, (NOW // 30_000_000 - 1, 1, 7, None, NOW)]
        assert [tuple(row) for row in store.read(lambda: fetch(PLAYS)).result()] == after
        assert verify.run(store, check=True, on_progress=lambda *_: None).differences == []
        assert [each for each in store.read(schema.problems).result() if "names of tracks" not in each] == []
