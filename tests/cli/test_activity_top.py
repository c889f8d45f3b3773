"""`musicsvc activity top`: who called most in a window of whole hours, as text and as JSON."""

import re
from collections.abc import Callable

import pytest

from musicsvc.clock import HOUR, MINUTE, Clock, isoformat
from musicsvc.store.accounts import tokens, users
from musicsvc.store.activity import calls, sums
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.store import Store
from musicsvc.store.models import ActivityProgress
from tests.cli.conftest import Json, Run
from tests.cli.test_activity import CALL

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database


@pytest.fixture
def noon(store: Store) -> int:
    """Write calls of the last two hours and of two days ago; return the full hour of the former."""
    noon = (Clock().now() // HOUR - 1) * HOUR
    owner = store.write(lambda: users.create("eve@example.test", api_access=True, now=noon)).result()
    store.write(lambda: tokens.create(owner, "crawler", now=noon)).result()
    stranger = CALL._replace(token_id=None, account_id=None, address="198.51.100.7", route=None, resource=None)
    many = [
        CALL._replace(at=noon + n * MINUTE, resource=f"playlists/{n % 5}", status=(200, 403, 429)[n % 3])
        for n in range(40)
    ]
    write(store, *many, *[stranger._replace(at=noon + n * MINUTE, status=404) for n in range(7)])
    flood = stranger._replace(at=noon, request_id="", status=401, calls=900)
    write(store, flood, CALL._replace(at=noon - 48 * HOUR, token_id=9, address="192.0.2.1"))
    return noon


def write(store: Store, *entries: Entry) -> None:
    with activity_log.build(store.url) as log:
        log.prepare()
        log.write(lambda: calls.add(entries)).result()


def test_the_rows_have_what_they_are_summed_by(ask: Json, noon: int) -> None:
    crawler = {"calls": 40, "refusals": 26, "objects": 5}
    times = {"first_at": isoformat(noon), "last_at": isoformat(noon + 39 * MINUTE)}
    strangers = {"calls": 907, "refusals": 907, "objects": 0, "first_at": isoformat(noon)}
    strangers["last_at"] = isoformat(noon + 6 * MINUTE)
    nobody = {"token": None, "address": None, "route": None}
    route = "/api/v1/playlists/{id}"

    # Who is near a limit comes first.
    assert ask("activity", "top") == [nobody | {"token": 1} | crawler | times, nobody | strangers]
    assert ask("activity", "top", "--by", "address") == [
        nobody | {"address": "203.0.113.9"} | crawler | times,
        nobody | {"address": "198.51.100.7"} | strangers,
    ]
    # Endpoints have no limit: the most calls come first.
    by_route = ask("activity", "top", "--by", "route")
    assert by_route == [nobody | strangers, nobody | {"route": route} | crawler | times]
    assert [row["token"] for row in ask("activity", "top", "--since", "3d")] == [1, None, 9]
    assert ask("activity", "top", "--since", "3d", "--until", isoformat(noon - 24 * HOUR))[0]["token"] == 9
    assert ask("activity", "top", "--since", isoformat(noon + HOUR)) == []


def test_the_text_says_who_is_near_a_limit_and_how_many_more_there_are(run: Run, noon: int) -> None:
    assert noon
    done = run("activity", "top", "--limit", "1")

    head, line = done.stdout.splitlines()
    assert re.split(" {2,}", head) == [
        *("token", "account", "calls", "refusals", "objects", "first (UTC)", "last (UTC)", "share", "near")
    ]
    assert line.split()[:5] == ["1", "eve@example.test", "40", "26", "5"]
    assert line.endswith("13 calls beyond a limit")
    assert done.stderr == "1 token more: --limit N.\n"
    assert "2 addresses more" in run("activity", "top", "--by", "address", "--limit", "1", "--since", "9d").stderr


def test_the_options_of_activity_still_work_beside_top(run: Run, ask: Json, noon: int) -> None:
    assert noon
    assert len(ask("activity", "--token", "9")) == 1
    assert "top" in run("activity", "top", "--help").stdout
    assert "--follow" in run("activity", "--help").stdout
    assert "Got unexpected extra argument" in run("activity", "bottom", expect=2).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--since", "yesterday"), "'yesterday' is not a valid time"),
        (("--since", "1h", "--until", "2h"), "--until must be later than --since"),
        (("--by", "status"), "'status' is not one of"),
        (("--limit", "0"), "must be 1 or more, not '0'"),
    ],
)
def test_wrong_options_are_named(run: Run, options: tuple[str, ...], message: str) -> None:
    assert message in " ".join(run("activity", "top", *options, expect=2).stderr.split())


def test_calls_that_are_not_summed_yet_are_named(run: Run, store: Store, log_of_before: Callable[[], int]) -> None:
    assert log_of_before()
    assert "are not summed yet: a running server does it." in run("activity", "top").stderr
    with activity_log.build(store.url) as log:
        log.prepare()
        while log.write(sums.advance).result():
            pass
    assert run("activity", "top").stderr == ""


@pytest.fixture
def log_of_before(store: Store, noon: int) -> Callable[[], int]:
    """Return a function that lets all calls be of before the sums."""

    def forget() -> int:
        with activity_log.build(store.url) as log:
            log.prepare()
            return log.write(unsum).result()

    def unsum() -> int:
        last = calls.last_id()
        ActivityProgress.update(newest=last, oldest=last).execute()
        return noon

    return forget
