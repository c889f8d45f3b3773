"""Containers of podman in namespaces that end with the tests, with everything that they mount and listen on."""

import json
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.program import until

PATIENCE = 120.0  # seconds; a start on a busy machine
# The tools for networks have files in /run; crun knows no mixture of both kinds of control groups.
KEEPER = """
ip link set lo up
mount -t tmpfs tmpfs /run
umount /sys/fs/cgroup/unified 2>/dev/null || true
echo ready
read -r _
"""
STORAGE = """[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""
CONTAINERS = """[containers]
cgroups = "disabled"
default_ulimits = ["nofile={files}:{files}", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""


class Engine:
    """podman, with its files in the folder and in the namespaces of the process."""

    def __init__(self, folder: Path, pid: int) -> None:
        self._pid = pid
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        configured = {"CONTAINERS_STORAGE_CONF": STORAGE, "CONTAINERS_CONF": CONTAINERS}
        self.variables = {name: str(folder / name.lower()) for name in configured}
        for name, text in configured.items():
            Path(self.variables[name]).write_text(text.format(folder=folder, files=files), "utf-8")

    def command(self, *arguments: str | Path) -> list[str]:
        """Return the command that runs these arguments where the containers are."""
        variables = (f"{name}={value}" for name, value in self.variables.items())
        return ["nsenter", "-m", "-n", "-t", str(self._pid), "--wd=/", "env", *variables, *map(str, arguments)]

    def run(self, *arguments: str | Path) -> str:
        """Run the command there, which must succeed; return its output."""
        done = self.try_to(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def try_to(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = self.command(*arguments)
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    def get(self, url: str, *options: str) -> Any:
        """Return the JSON that the URL answers with."""
        return json.loads(self.run("curl", "-sS", "--fail", *options, url))

    @contextmanager
    def container(self, *options: str | Path) -> Iterator[str]:
        """Start the container, and remove it after the block; yield its id."""
        name = self.run("podman", "run", "-d", *options).strip()
        try:
            yield name
        finally:
            self.run("podman", "rm", "-f", "-t", "0", name)

    def is_well(self, name: str) -> bool:
        """Return whether the health check of the container succeeds. Fails if the container has ended."""
        healthy = self.try_to("podman", "healthcheck", "run", name).returncode == 0
        assert healthy or self.state(name)["Running"], self.logs(name)
        return healthy

    def await_health(self, name: str) -> None:
        until(lambda: self.is_well(name), PATIENCE)

    def state(self, name: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(self.run("podman", "inspect", name))
        return dict(found[0]["State"])

    def logs(self, name: str) -> str:
        done = self.try_to("podman", "logs", name)
        return done.stdout + done.stderr


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    """Yield an engine without images. Its containers and volumes end with the block."""
    command = ["unshare", "-m", "-n", "--propagation", "private", "sh", "-ec", KEEPER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout
        assert keeper.stdout.readline() == b"ready\n"
        opened = Engine(folder, keeper.pid)
        try:
            yield opened
        finally:
            opened.run("podman", "rm", "-f", "-a", "-t", "0")
            opened.run("podman", "volume", "rm", "-f", "-a")
