"""docs/metrics.md: its commands run, and its tables name every metric and every field."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.program import until
from tests.support.prometheus import read
from tests.support.reserved_port import reserved_port

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "metrics.md").read_text("utf-8")
NAMED = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
(EXAMPLE,) = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture
def port(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Yield the port that the commands of the page use in this test."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")  # the first one is logged after three seconds
    with reserved_port() as port:
        monkeypatch.setenv("MUSICSVC_SERVER__PORT", str(port))
        yield port


def lines(block: int) -> list[list[str]]:
    """Return the commands of a block of the page."""
    found = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[block]
    return [shlex.split(line) for line in found.strip().splitlines()]


@contextmanager
def running(line: list[str], port: int, err: Path) -> Iterator[None]:
    """Run the server that the command of the page starts."""
    given = [part for part in line if re.match(r"[A-Z_]+=", part)]
    program, *arguments = line[len(given) :]
    assert program == "musicsvc"
    environment = os.environ | dict(part.split("=", 1) for part in given)  # noqa: TID251 - handed on
    command = [sys.executable, "-m", program, *arguments]
    with err.open("wb") as file, subprocess.Popen(command, cwd=ROOT, env=environment, stderr=file) as process:
        try:
            until(lambda: answers(port) or process.poll() is not None)
            yield
        finally:
            process.terminate()
            process.wait(20)


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def get(url: str, port: int) -> str:
    with urlopen(url.replace(":8080", f":{port}")) as answer:  # noqa: S310 - the server that was just started
        return str(answer.read().decode())


def test_the_table_names_every_figure_that_is_told(port: int, tmp_path: Path) -> None:
    serve, (curl, silently, url) = lines(0)
    with running(serve, port, tmp_path / "err"):
        assert (curl, silently) == ("curl", "-s")
        found = {name for name, _ in read(get(url, port))}
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


def test_the_example_of_a_line_is_what_a_request_leaves(port: int, tmp_path: Path) -> None:
    (serve,) = lines(1)
    with running(serve, port, tmp_path / "err"):
        get("http://127.0.0.1:8080/api/v1/albums", port)
    _, line, _ = (tmp_path / "err").read_text("utf-8").splitlines()
    found: dict[str, Any] = json.loads(line)
    assert list(found) == list(EXAMPLE)
    assert {name: type(value) for name, value in found.items()} == {name: type(EXAMPLE[name]) for name in EXAMPLE}
    same = ("level", "message", "logger", "account", "token", "address", "method", "route", "status")
    assert [found[name] for name in same] == [EXAMPLE[name] for name in same]
    assert set(EXAMPLE) | {"exception", "lost"} == {name for name in NAMED if not name.startswith("musicsvc_")}
