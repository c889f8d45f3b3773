"""The address of a running server in password links and lines for curl, and the line of the log when a server stops."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.store.engine.sqlite import file_locks
from tests.support.command import run_in_process
from tests.support.program import Program, until

pytestmark = pytest.mark.only_on("sqlite")
NOTE = "No running server was found: the link has the address of the settings, "


def link() -> tuple[str, str]:
    """Create a password link. Return the part before `/password/`, and stderr."""
    done = run_in_process(["user", "password-link", "ada@example.test"])
    assert done.returncode == 0
    return done.stdout.partition("/password/")[0], done.stderr


@pytest.fixture(autouse=True)
def account(migrated: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - it names the database
    monkeypatch.setenv("MUSICSVC_SERVER__PORT", "8765")
    assert run_in_process(["user", "create", "ada@example.test"]).returncode == 0


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
    for start in (lambda: "http://127.0.0.1:8765", lambda: serve().root):
        root = start()
        done = run_in_process(["request", "/api/v1/genres"])
        assert done.stdout.splitlines()[-1] == f"curl -i {root}/music/api/v1/genres"


def test_the_address_of_a_server_is_left_out_where_its_file_cannot_be_written(tmp_path: Path) -> None:
    place = tmp_path / "missing" / "musicsvc.db"
    with file_locks.serving(place, "http://127.0.0.1:1"), file_locks.serving(None, "http://127.0.0.1:1"):
        assert file_locks.served_at(place) is None
