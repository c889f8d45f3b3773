"""HAProxy in front of three nodes that are restarted one by one under load: no request fails."""

import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.faults import callers
from tests.faults.nodes import Balancer, Traffic
from tests.support.program import Program, ended
from tests.support.reserved_port import reserved_port

pytestmark = [pytest.mark.slow, pytest.mark.only_on("postgres")]
DOCUMENT = Path(__file__).parents[2] / "docs" / "proxy.md"
CALLERS = 4


@contextmanager
def haproxy(folder: Path, port: int, nodes: list[int]) -> Iterator[None]:
    """Run HAProxy with the documented configuration, on plain HTTP at this port, in front of these ports."""
    command = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if command is None:
        pytest.skip("haproxy is not installed")
    found = re.search(r"```haproxy\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert found
    text, count = re.subn(r"bind :443 .*", f"bind 127.0.0.1:{port}", found[1])
    assert count == 1
    for number, node in enumerate(nodes, start=1):
        text, count = re.subn(rf"10\.0\.0\.{number}:8080", f"127.0.0.1:{node}", text)
        assert count == 1
    file = folder / "haproxy.cfg"
    file.write_text(text, "utf-8")
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([command, "-db", "-f", str(file)], stdout=log, stderr=log)
    with ended(process):
        yield


@pytest.fixture
def serve(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Program]:
    """Return a function that starts a node at a port."""
    for name, value in {
        "DATABASE_URL": store_url,
        "DATA_DIR": str(tmp_path / "data"),
        "LIMITS__ENABLED": "false",
        "SERVER__SHUTDOWN_DELAY": "3",
    }.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)

    def start(port: int) -> Program:
        folder = tmp_path / f"{port}"
        folder.mkdir(exist_ok=True)
        return Program(folder, "serve", "--port", str(port))

    return start


def test_nodes_behind_haproxy_are_restarted_one_by_one_and_no_request_fails(
    serve: Callable[[int], Program], store_url: str, tmp_path: Path
) -> None:
    with opening.connect(store_url) as store:
        accounts = store.write(lambda: callers.prepare(CALLERS, Clock().now())).result()
    with ExitStack() as stack:
        port, *ports = [stack.enter_context(reserved_port()) for _ in range(4)]
        nodes = [stack.enter_context(serve(each)) for each in ports]
        stack.enter_context(haproxy(tmp_path, port, [int(node.root.rpartition(":")[2]) for node in nodes]))
        proxy = stack.enter_context(Balancer())
        proxy.add(f"http://127.0.0.1:{port}")
        proxy.asks = False  # HAProxy does
        with Traffic(proxy, accounts) as traffic:
            for node, each in zip(nodes, ports, strict=True):
                traffic.go_on()
                assert node.end(signal.SIGTERM) == 0
                assert stack.enter_context(serve(each)).root
        assert proxy.failures + proxy.unavailable + traffic.odd == []
    with opening.connect(store_url) as store:
        assert callers.faults(store, traffic.callers) == []
