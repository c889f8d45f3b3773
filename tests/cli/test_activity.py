"""`musicsvc activity`: calls and events in order, filters, and --follow."""

import json
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from musicsvc.clock import MINUTE, Clock, isoformat
from musicsvc.store.accounts import tokens, users
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.store import Store
from musicsvc.store.security.security_events import Administrator
from tests.cli.conftest import Json, Run
from tests.support.program import Program, until

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "activity.md"
CALL = Entry(
    at=0,
    request_id="first",
    account_id=1,
    token_id=1,
    address="203.0.113.9",
    method="GET",
    route="/api/v1/playlists/{id}",
    resource="playlists/7",
    status=200,
    retry_after=None,
    milliseconds=3.25,
    size=80,
    limits_apply=True,
    private=True,
)


@pytest.fixture
def log(store: Store) -> Callable[..., None]:
    """Return a function that writes calls to the activity log."""

    def write(*entries: Entry) -> None:
        with activity_log.build(store.url) as opened:
            opened.prepare()
            opened.write(lambda: calls.add(entries)).result()

    return write


@pytest.fixture
def filled(store: Store, log: Callable[..., None]) -> int:
    """Write a few calls and events, the last one now; return its time."""
    now = Clock().now()

    def acts() -> None:
        user = users.create("ada@example.test", api_access=True, now=now - 9 * MINUTE)
        token, _ = tokens.create(user, "laptop", now=now - 8 * MINUTE)
        tokens.revoke(token.id, "abuse: too many refusals", now=now - 2 * MINUTE, actor="abuse")

    store.write(acts).result()
    stranger = CALL._replace(account_id=None, token_id=None, route=None, resource=None, address="198.51.100.7")
    log(
        CALL._replace(at=now - 4 * MINUTE),
        CALL._replace(at=now - 3 * MINUTE, request_id="second", status=429, retry_after=17),
        stranger._replace(at=now, request_id="third", status=404, method="POST"),
    )
    return now


def test_calls_and_events_are_merged_by_time_newest_last(ask: Json, filled: int) -> None:
    shown = ask("activity")

    assert [row.get("kind") or row["request_id"] for row in shown] == [
        "account.created",
        "access.granted",
        "token.created",
        "first",
        "second",
        "token.revoked",
        "third",
    ]
    assert shown[4] == {
        "type": "call",
        "at": isoformat(filled - 3 * MINUTE),
        **{key: value for key, value in CALL._asdict().items() if key != "at"},
        "request_id": "second",
        "status": 429,
        "retry_after": 17,
        "account": "ada@example.test",
    }
    assert shown[5] == {
        "type": "event",
        "at": isoformat(filled - 2 * MINUTE),
        "kind": "token.revoked",
        "account_id": 1,
        "token_id": 1,
        "actor": "abuse",
        "reason": "abuse: too many refusals",
        "actor_id": None,
        "account": "ada@example.test",
        "actor_account": None,
    }


def test_each_row_is_one_line_of_text(run: Run, filled: int) -> None:
    lines = run("activity").stdout.splitlines()
    who, cost, wait = "ada@example.test", "3.2 ms  80 bytes", "  retry after 17 s"

    assert [line[:23] for line in lines[-3:]] == [
        isoformat(filled - ago * MINUTE)[:23].replace("T", " ") for ago in (3, 2, 0)
    ]
    assert [line[25:] for line in lines[-3:]] == [
        f"429 GET    /api/v1/playlists/{{id}}  playlists/7  {who} token 1  203.0.113.9  {cost}{wait}  second",
        f"token.revoked  {who} token 1  by abuse: too many refusals",
        f"404 POST   (no endpoint)  -  198.51.100.7  {cost}  third",
    ]


def test_an_administrator_is_named(run: Run, ask: Json, store: Store) -> None:
    def acts() -> None:
        users.create("ann@label.test", admin=True, now=1)
        ben = users.create("ben@label.test", now=2)
        users.suspend(ben, reason="scraping", now=3, actor=Administrator(1))
        users.reinstate(ben, now=4, actor=Administrator(99))

    store.write(acts).result()
    assert [(row["actor"], row["actor_id"], row["actor_account"]) for row in ask("activity")[2:]] == [
        ("admin", 1, "ann@label.test"),
        ("admin", 99, None),
    ]
    assert [line[25:] for line in run("activity").stdout.splitlines()[2:]] == [
        "account.suspended  ben@label.test  by admin ann@label.test: scraping",
        "account.reinstated  ben@label.test  by admin account 99",
    ]


def test_counts_of_calls_without_a_token_are_shown(run: Run, ask: Json, log: Callable[..., None]) -> None:
    count = CALL._replace(at=Clock().now(), request_id="", account_id=None, token_id=None, address="2001:db8::/64")
    count = count._replace(
        method="", route=None, resource=None, status=401, size=2_764_468, limits_apply=False, private=False
    )
    log(count._replace(calls=98_731), count._replace(calls=1, status=404, address="others"))
    assert [line[25:] for line in run("activity", "--kind", "calls").stdout.splitlines()] == [
        "401 98,731 more calls without a token in this minute  2001:db8::/64  2764468 bytes",
        "404 1 more call without a token in this minute  others  2764468 bytes",
    ]
    (shown,) = ask("activity", "--address", "2001:db8::1")
    assert (shown["calls"], shown["request_id"], shown["address"]) == (98_731, "", "2001:db8::/64")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--limit", "2"], ["token.revoked", "third"]),
        (["--kind", "events", "--limit", "1"], ["token.revoked"]),
        (["--account", "ADA@example.test", "--since", "6m"], ["first", "second", "token.revoked"]),
        (["--user", "ADA@example.test", "--since", "6m"], ["first", "second", "token.revoked"]),
        (["--token", "1", "--until", "150s"], ["token.created", "first", "second"]),
        (["--address", "198.51.100.7", "--method", "post"], ["third"]),
        (["--status", "429"], ["second"]),
        (["--status", "4xx", "--kind", "calls"], ["second", "third"]),
        (["--route", "playlists", "--since", "1d", "--until", "2099-01-01T00:00:00Z"], ["first", "second"]),
        (["--request", "first"], ["first"]),
    ],
)
@pytest.mark.usefixtures("filled")
def test_filters_select_rows(ask: Json, options: list[str], expected: list[str]) -> None:
    assert [row.get("kind") or row["request_id"] for row in ask("activity", *options)] == expected


def test_without_a_log_nothing_is_printed_or_created(ask: Json, run: Run, store_url: str) -> None:
    assert ask("activity") == []
    nothing = run("activity")
    assert (nothing.stdout, nothing.stderr) == ("", "No such entries.\n")

    if store_url.startswith("sqlite:///"):
        assert not Path(store_url.removeprefix("sqlite:///")).with_name("activity.db").exists()


@pytest.mark.only_on("sqlite")
def test_init_creates_the_configured_log(bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare("init")
    assert (tmp_path / "folder" / "activity.db").exists()
    monkeypatch.setenv("MUSICSVC_ACTIVITY__FILE", str(tmp_path / "logs" / "calls.db"))
    bare("db", "upgrade")
    assert (tmp_path / "logs" / "calls.db").exists()
    bare("db", "check")


@pytest.mark.only_on("sqlite")
def test_a_damaged_log_is_reported_and_not_changed(run: Run, log: Callable[..., None], store: Store) -> None:
    log(CALL)
    file = Path(store.url.removeprefix("sqlite:///")).with_name("activity.db")
    file.write_bytes(b"\xff" * 8192)

    assert "is damaged" in run("activity", expect=1).stderr
    assert file.read_bytes() == b"\xff" * 8192


def test_control_characters_are_escaped(run: Run, store: Store, log: Callable[..., None]) -> None:
    def acts() -> None:
        user = users.create("ada@example.test", now=1)
        users.suspend(user, reason="one\r\ntwo\x1b[31m", now=2)

    store.write(acts).result()
    log(CALL._replace(at=3, resource="a\nb\x1b", request_id='"', account_id=99))

    lines = run("activity").stdout.splitlines()
    assert len(lines) == 3
    assert lines[1].endswith("by cli: one\\r\\ntwo\\x1b[31m")
    assert "a\\nb\\x1b  account 99 token 1" in lines[2]
    assert len(json.loads(run("activity", "--json").stdout)) == 3


@pytest.mark.slow
def test_follow_prints_new_rows_while_a_server_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("user", "create", "ada@example.test")
    folders = [tmp_path / name for name in ("server", "json", "lines")]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    with (
        Program(folders[1], "activity", "--follow", "--json") as follower,
        Program(folders[2], "activity", "-f", "--status", "404") as narrow,
        Program(folders[0], "serve", "--port", "0", "--workers", "2") as server,
    ):
        until(lambda: "account.created" in follower.out)
        for number in range(10):
            with pytest.raises(OSError, match="404"):
                urlopen(f"{server.root}/api/v1/nothing/{number}")  # noqa: S310 - the server that was just started
        run("access", "grant", "ada@example.test")

        until(lambda: len(rows_of(follower)) == 13)
        until(lambda: narrow.out.count("\n") == 10)
        rows = rows_of(follower)
        assert server.end(signal.SIGTERM) == 0
        assert follower.end(signal.SIGINT) == 130
        assert narrow.end(signal.SIGINT) == 130
    kinds = ["access.granted", "account.created", *["call"] * 10, "password.link_created"]
    assert sorted(row.get("kind", "call") for row in rows) == kinds
    assert len({row["request_id"] for row in rows if row["type"] == "call"}) == 10
    assert narrow.err == ""


@pytest.mark.usefixtures("filled")
def test_the_commands_of_the_documentation_work(run: Run) -> None:
    run("user", "create", "ann@label.test")
    lines = re.findall(r"^musicsvc (activity.*?)(?: +#.*)?$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 10
    for line in lines:
        if "--follow" not in line:
            run(*shlex.split(line))


def rows_of(follower: Program) -> list[dict[str, Any]]:
    return [json.loads(line) for line in follower.out.splitlines(keepends=True) if line.endswith("\n")]
