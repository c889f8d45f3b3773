"""docs/metrics.md: its commands run, and its tables name every metric and every field."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from musicsvc.server.access import rate_limits
from musicsvc.server.call import BUSY
from musicsvc.server.handlers.plays import OWN, REASONS
from tests.support import preloaded
from tests.support.program import Program
from tests.support.prometheus import read

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "metrics.md").read_text("utf-8")
NAMED = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
(EXAMPLE,) = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture(autouse=True)
def settings(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")  # the first one is logged after three seconds
    monkeypatch.setenv("MUSICSVC_SERVER__PORT", "0")


def lines(block: int) -> list[list[str]]:
    """Return the commands of a block of the page."""
    found = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[block]
    return [shlex.split(line) for line in found.strip().splitlines()]


@contextmanager
def running(line: list[str], folder: Path) -> Iterator[Program]:
    """Run the server that the command of the page starts."""
    given = [part for part in line if re.match(r"[A-Z_]+=", part)]
    program, *arguments = line[len(given) :]
    assert program == "musicsvc"
    start = partial(preloaded.start, variables=dict(part.split("=", 1) for part in given))
    with Program(folder, *arguments, start=start) as server:
        yield server


def get(url: str, server: Program) -> str:
    with urlopen(url.replace("http://127.0.0.1:8080", server.root)) as answer:  # noqa: S310 - the server that was just started
        return str(answer.read().decode())


def test_the_table_names_every_figure_that_is_told(tmp_path: Path) -> None:
    serve, (curl, silently, url) = lines(0)
    with running(serve, tmp_path) as server:
        assert (curl, silently) == ("curl", "-s")
        found = {name for name, _ in read(get(url, server))}
    figures = {re.sub(r"_(bucket|sum|count)$", "", name) for name in found if name.startswith("musicsvc_")}
    assert all(name.startswith(("musicsvc_", "process_")) for name in found)
    told = {name for name in NAMED if name.startswith("musicsvc_")}
    sometimes = {"musicsvc_backup_age_seconds", "musicsvc_backup_bytes", "musicsvc_requests_refused_total"}
    sometimes |= {"musicsvc_tls_certificate_not_after_timestamp_seconds", "musicsvc_plays_refused_total"}
    sometimes |= {name for name in told if name.startswith("musicsvc_replica_")}
    sometimes |= {name for name in told if name.startswith("musicsvc_database_connection")}  # on PostgreSQL
    sometimes |= {"musicsvc_database_bytes", "musicsvc_wal_bytes", "musicsvc_request_seconds"}
    assert figures <= told
    assert told - figures <= sometimes | {"musicsvc_requests_total"}


def test_the_table_names_every_limit_and_every_reason() -> None:
    (limits,) = re.findall(r"`musicsvc_requests_refused_total` \| .*", PAGE)
    (reasons,) = re.findall(r"`musicsvc_plays_refused_total` \| .*", PAGE)
    known = {*rate_limits.DESCRIPTIONS, rate_limits.ATTEMPTS_ON_ACCOUNT.name, rate_limits.ATTEMPTS_BY_ADDRESS.name}

    assert {*re.findall(r"`(\w+)`", limits)} == known | {BUSY, "musicsvc_requests_refused_total", "limit"}
    assert {*re.findall(r"`(\w+)`", reasons)} == {*REASONS.values(), OWN, "musicsvc_plays_refused_total", "reason"}


def test_the_example_of_a_line_is_what_a_request_leaves(tmp_path: Path) -> None:
    (serve,) = lines(1)
    with running(serve, tmp_path) as server:
        get("http://127.0.0.1:8080/api/v1/albums", server)
    _, line, _ = server.err.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert list(found) == list(EXAMPLE)
    assert {name: type(value) for name, value in found.items()} == {name: type(EXAMPLE[name]) for name in EXAMPLE}
    same = ("level", "message", "logger", "account", "token", "address", "method", "route", "status")
    assert [found[name] for name in same] == [EXAMPLE[name] for name in same]
    assert set(EXAMPLE) | {"exception", "lost"} == {name for name in NAMED if not name.startswith("musicsvc_")}
