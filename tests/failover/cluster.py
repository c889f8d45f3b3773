"""Three PostgreSQL servers under Patroni, with the configuration that docs/postgres.md shows, and an etcd."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support import postgres
from tests.support.program import until
from tests.support.reserved_port import reserved_port

DOCUMENT = Path(__file__).parents[2] / "docs" / "postgres.md"
PATRONI = Path(__file__).with_name(".venv") / "bin" / "patroni"
MEMBERS = 3
PASSWORDS = {"PATRONI_SUPERUSER_PASSWORD": "superuser-of-a-test", "PATRONI_REPLICATION_PASSWORD": "replica-of-a-test"}
NO_SOCKETS = "  parameters:\n    unix_socket_directories: ''\n"
PATIENCE = 180.0


class Cluster:
    """Processes in a folder. `ports`: those of the REST API and of PostgreSQL of each member, and two of etcd."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self._folder = folder
        self._rest, self._postgres, self._etcd = ports[:MEMBERS], ports[MEMBERS:-2], ports[-2:]
        self._prefix = postgres.unprivileged(folder)
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start etcd and the members. Wait until one leads and another one is its synchronous replica."""
        client, peer = (f"http://127.0.0.1:{port}" for port in self._etcd)
        arguments = ["--data-dir", str(self._folder / "etcd"), "--initial-cluster", f"default={peer}"]
        for name, value in {"listen-client": client, "advertise-client": client, "listen-peer": peer}.items():
            arguments += [f"--{name}-urls", value]
        self._run("etcd", ["etcd", *arguments, "--initial-advertise-peer-urls", peer], {})
        for number in range(MEMBERS):
            file = self._folder / f"n{number + 1}.yml"
            file.write_text(self._configuration(number), "utf-8")
            variables = {**PASSWORDS, "PATRONI_POSTGRESQL_PGPASS": str(self._folder / f"n{number + 1}.pgpass")}
            self._run(file.stem, [str(PATRONI), str(file)], variables)
        self.wait_for({"leader", "sync_standby"})

    def _run(self, name: str, command: list[str], variables: Mapping[str, str]) -> None:
        environment = {**os.environ, **variables}  # noqa: TID251 - handed on
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([*self._prefix, *command], stdout=log, stderr=log, env=environment, cwd=self._folder)
            )

    def _configuration(self, number: int) -> str:
        """Return the documented configuration, with the addresses and paths of a member."""
        found = re.search(r"```yaml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
        assert found
        changed = {
            r"name: n1": f"name: n{number + 1}",
            r"10\.0\.0\.1:2379,\S+": f"127.0.0.1:{self._etcd[0]}",
            r"10\.0\.0\.1:8008": f"127.0.0.1:{self._rest[number]}",
            r"10\.0\.0\.1:5432": f"127.0.0.1:{self._postgres[number]}",
            r"10\.0\.0\.0/24": "127.0.0.1/32",
            r"data_dir: .*": f"data_dir: {self._folder / f'data{number + 1}'}",
            r"bin_dir: .*": f"bin_dir: {postgres.find_binaries()}",
        }
        text = found[1]
        for old, new in changed.items():
            text, count = re.subn(old, new, text)
            assert count, old
        return text + NO_SOCKETS

    def members(self) -> dict[str, dict[str, Any]]:
        """Return the members by name, as one that runs knows them; none if no one answers."""
        for port in self._rest:
            with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/cluster", timeout=5) as answer:
                return {member["name"]: member for member in json.load(answer)["members"]}
        return {}

    def wait_for(self, roles: set[str]) -> None:
        """Wait until running members have these roles."""

        def there() -> bool:
            running = [each for each in self.members().values() if each["state"] in {"running", "streaming"}]
            return roles <= {each["role"] for each in running} and len(running) >= len(roles)

        until(there, PATIENCE)

    @property
    def leader(self) -> str:
        (name,) = [name for name, member in self.members().items() if member["role"] == "leader"]
        return name

    def kill(self, name: str) -> None:
        """Kill Patroni and PostgreSQL of a member (kill -9), as if its machine were lost."""
        number = int(name[1:])
        postmaster = int((self._folder / f"data{number}" / "postmaster.pid").read_text("utf-8").split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text("utf-8").split()
        for pid in (self._processes[number].pid, postmaster, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._processes[number].wait()

    def address(self, user: str, password: str, database: str, **options: str) -> str:
        """Return the address of a database on whichever member accepts writes."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._postgres)
        query = "".join(f"&{name}={value}" for name, value in options.items())
        return f"postgresql://{user}:{password}@{hosts}/{database}?target_session_attrs=read-write{query}"

    def stop(self) -> None:
        for number, process in reversed([*enumerate(self._processes)]):
            if process.poll() is not None:
                continue
            if number:
                with suppress(OSError):
                    self.kill(f"n{number}")
            process.kill()
            process.wait()


@contextmanager
def running() -> Iterator[Cluster]:
    """Run a cluster for the block; skip the test where a program for it is missing."""
    if shutil.which("etcd") is None or not PATRONI.exists():
        pytest.skip("etcd or Patroni is not installed (tests/failover/install)")
    folder = Path(tempfile.mkdtemp(prefix="msvc"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ports = [stack.enter_context(reserved_port()) for _ in range(2 * MEMBERS + 2)]
        try:
            cluster = Cluster(folder, ports)
        except postgres.MissingError as error:
            pytest.skip(str(error))
        stack.callback(cluster.stop)
        cluster.start()
        yield cluster
