"""The Debian package on a Debian of its own, booted with systemd: the service under the unit as it is."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.program import until

PATIENCE = 120.0  # seconds; a start on a busy machine
TOOLS = ("systemd-nspawn", "debootstrap", "unshare", "nsenter", "curl")
URL = "http://127.0.0.1:8080"
EXPORTS = f"{URL}/api/v1/producer-intelligence/insights/export"

pytestmark = [pytest.mark.long, pytest.mark.only_on("sqlite")]


class Machine:
    """The booted Debian."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        until(lambda: self.try_to("systemctl", "is-system-running").stdout.strip() in {"running", "degraded"}, PATIENCE)

    @property
    def _leader(self) -> str:
        assert self._process.poll() is None
        return Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text("utf-8").strip() or "0"

    def try_to(self, *command: str, namespaces: str = "-a") -> subprocess.CompletedProcess[str]:
        """Run a command of that Debian; with other namespaces, such as `-n`, one of this machine."""
        return subprocess.run(
            ["nsenter", namespaces, "-t", self._leader, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def run(self, *command: str, namespaces: str = "-a") -> str:
        """Run the command, which must succeed; return its output."""
        done = self.try_to(*command, namespaces=namespaces)
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.journal())
        return done.stdout.strip()

    def musicsvc(self, *arguments: str) -> str:
        program = ("musicsvc", "--config", "/etc/musicsvc/config.toml")
        return self.run("runuser", "-u", "musicsvc", "--", *program, *arguments)

    def systemctl(self, *arguments: str) -> str:
        return self.run("systemctl", *arguments)

    def show(self, name: str) -> str:
        return self.systemctl("show", "--value", "-p", name, "musicsvc")

    def journal(self) -> str:
        return self.try_to("journalctl", "--no-pager", "-o", "cat", "-u", "musicsvc").stdout

    def await_service(self) -> None:
        until(lambda: self.show("ActiveState") == "active", PATIENCE)
        self.run("curl", "-sS", "--fail", f"{URL}/readyz", namespaces="-n")


def _require_tools() -> None:
    if os.geteuid() != 0:
        pytest.skip("a Debian is booted as root only")
    path = f"{os.defpath}:/usr/sbin"
    if missing := [tool for tool in TOOLS if not shutil.which(tool, path=path)]:
        pytest.skip(f"{', '.join(missing)} not installed")


@pytest.fixture(scope="module")
def machine(build: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    _require_tools()
    (package,) = build("deb").glob("*.deb")
    root = tmp_path_factory.mktemp("machine") / "root"
    installed = "--include=systemd,systemd-sysv,procps"
    subprocess.run(["debootstrap", "--variant=minbase", installed, "bookworm", root], check=True, capture_output=True)
    shutil.copy(package, root)
    subprocess.run(["chroot", root, "dpkg", "-i", f"/{package.name}"], check=True, capture_output=True)
    nspawn = ["systemd-nspawn", "-q", "-D", str(root), "--boot", "--register=no", "--keep-unit", "--private-network"]
    with (root.parent / "console").open("wb") as console:
        command = ["unshare", "-m", *nspawn, "--kill-signal=SIGRTMIN+3"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        try:
            yield Machine(process)
        finally:
            process.terminate()  # systemd shuts down
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()
            process.wait()


def test_the_service_is_confined_when_it_is_ready(machine: Machine) -> None:
    machine.await_service()

    status = machine.run("cat", f"/proc/{machine.show('MainPID')}/status")
    assert {"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"} <= {*status.splitlines()}
    assert machine.show("StatusText").startswith("Serving ")


def test_the_service_exports_every_format_under_the_unit(machine: Machine) -> None:
    machine.await_service()
    machine.musicsvc("user", "create", "ann@label.test")
    machine.musicsvc("access", "grant", "ann@label.test")
    token = f"Authorization: Bearer {machine.musicsvc('token', 'create', 'ann@label.test', '--name', 'laptop')}"
    for kind in ("csv", "json", "xlsx", "pdf"):
        fetched = ("-sS", "--fail", "-o", "/dev/null", "-w", "%{size_download}", "-d", "{}")
        typed = ("-H", token, "-H", "Content-Type: application/json")
        assert int(machine.run("curl", *fetched, *typed, f"{EXPORTS}/{kind}", namespaces="-n")) > 0


def test_the_service_reloads_and_stops_when_systemd_asks(machine: Machine) -> None:
    machine.await_service()
    machine.systemctl("reload", "musicsvc")
    until(lambda: "reloaded the settings" in machine.journal(), PATIENCE)
    machine.systemctl("stop", "musicsvc")
    assert "stopped (SIGTERM)" in machine.journal()
    assert machine.show("Result") == "success"
    machine.systemctl("start", "musicsvc")


def test_systemd_replaces_a_killed_service(machine: Machine) -> None:
    machine.await_service()
    killed = machine.show("MainPID")
    machine.run("kill", "-KILL", killed)
    until(lambda: machine.show("MainPID") not in {killed, "0"}, PATIENCE)
    machine.await_service()


def test_the_service_gets_the_database_url_from_the_credential(machine: Machine) -> None:
    machine.await_service()
    stored = "/etc/credstore/musicsvc.database_url"
    url = "sqlite:////var/lib/musicsvc/another.db"
    try:
        machine.run("sh", "-c", f"umask 077; mkdir -p /etc/credstore; echo {url} > {stored}")
        assert machine.try_to("systemctl", "restart", "musicsvc").returncode == 1
        assert re.search("no database at /var/lib/musicsvc/another.db", machine.journal())
    finally:
        machine.run("rm", stored)
    machine.systemctl("restart", "musicsvc")
    machine.await_service()
