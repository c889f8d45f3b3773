"""The address of a running server in password links and lines for curl, and the line of the log when a server stops."""

import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from musicsvc.store.engine.sqlite import file_locks
from tests.support.command import run_in_process
from tests.support.program import Program, until

NOTE = "No running server was found: the link has the address of the settings, "


def link() -> tuple[str, str]:
    """Create a password link. Return the part before `/password/`, and stderr."""
    done = run_in_process(["user", "password-link", "ada@example.test"])
    assert done.returncode == 0
    return done.stdout.partition("/password/")[0], done.stderr


@pytest.fixture(autouse=True)
def account(migrated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (migrated / "folder").mkdir()
    monkeypatch.setenv("MUSICSVC_SERVER__PORT", "8765")
    assert run_in_process(["user", "create", "ada@example.test"]).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "workers"), [(signal.SIGTERM, "1"), (signal.SIGINT, "2"), (signal.SIGKILL, "1"), (signal.SIGKILL, "2")]
)
def test_a_link_has_the_address_of_the_server_that_runs_and_the_log_the_signal_that_stops_it(
    serve: Callable[..., Program], workers: str, end: signal.Signals
) -> None:
    settings = "http://127.0.0.1:8765"
    assert link() == (settings, f"{NOTE}{settings}.\n")
    program = serve("--workers", workers)
    assert program.root != settings
    assert link() == (program.root, "")
    program.end(end)
    until(lambda: link()[1] != "")  # workers notice soon that their supervisor was killed
    assert link() == (settings, f"{NOTE}{settings}.\n")
    stops = re.findall(r"stopped \(([^)]*)\)", program.err)
    assert stops == ([] if end == signal.SIGKILL else [end.name])


def test_a_link_of_a_server_on_every_address_says_that_a_name_has_to_replace_it(
    serve: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__TRUSTED_PROXIES", '["192.0.2.1"]')
    root = serve("--host", "0.0.0.0").root  # noqa: S104 - a test
    assert root.startswith("http://0.0.0.0:")
    said = "The server listens on every address: replace the one in the link by the name of its machine.\n"
    assert link() == (root, said)


def test_a_link_has_the_public_address_whatever_runs(
    serve: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serve().root
    monkeypatch.setenv("MUSICSVC_SERVER__PUBLIC_URL", "https://music.example.test")
    assert link() == ("https://music.example.test", "")


def test_announced_addresses_and_links_have_the_base_path(
    serve: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__BASE_PATH", "/label/music")
    program = serve()
    assert f"listens on {program.root}/label/music (API documentation: {program.root}/label/music/docs)" in program.err
    assert link() == (f"{program.root}/label/music", "")


def test_the_line_for_curl_of_a_request_reaches_the_server_that_runs(
    serve: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__BASE_PATH", "/music")
    note = "No running server was found: the line for curl has the address of the settings, {}/music.\n"
    for start, said in ((lambda: "http://127.0.0.1:8765", note), (lambda: serve().root, "")):
        root = start()
        done = run_in_process(["request", "/api/v1/genres"])
        assert done.stdout.splitlines()[-1] == f"curl -i {root}/music/api/v1/genres"
        assert done.stderr == said.format(root)


def test_of_several_servers_the_one_of_the_settings_is_found_else_the_one_that_started_last(
    serve: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = serve()
    early = first.root
    last = serve()
    late = last.root
    assert early != late
    assert link() == (late, "")
    monkeypatch.setenv("MUSICSVC_SERVER__PORT", early.rpartition(":")[2])
    assert link() == (early, "")
    assert asked() == early
    first.end(signal.SIGTERM)
    assert asked() == late
    last.end(signal.SIGKILL)
    until(lambda: link()[1] != "")


def asked() -> str:
    """Return the address that `healthcheck` asks."""
    done = run_in_process(["healthcheck", "--timeout", "30s", "--json"])
    return str(json.loads(done.stdout)["url"]).removesuffix("/healthz")


def test_the_address_of_a_server_is_left_out_where_its_file_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "missing" / "musicsvc.db"
    with file_locks.serving(place, 1) as tell:
        tell("http://127.0.0.1:1")
        assert file_locks.served_at(place, 1) is None


def test_a_server_that_takes_the_port_of_one_that_stops_is_found_to_its_end(tmp_path: Path) -> None:
    place, other_file = tmp_path / "musicsvc.db", tmp_path / "other"
    other_file.write_text("kept", "utf-8")
    (tmp_path / f"musicsvc.db.{os.getpid()}.new").symlink_to(other_file)
    with ExitStack() as one, ExitStack() as other:
        one.enter_context(file_locks.serving(place, 1))("http://127.0.0.1:1/old")
        other.enter_context(file_locks.serving(place, 1))("http://127.0.0.1:1/new")
        one.close()
        assert file_locks.served_at(place, 1) == "http://127.0.0.1:1/new"
    assert list(tmp_path.glob("*served*")) == []
    assert other_file.read_text("utf-8") == "kept"  # not written through a link
