"""The commands of the pages for PostgreSQL: a first start, a dump, and back to a moment with a real pgBackRest."""

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.page_commands import blocks, commands
from tests.support.program import until
from tests.support.reserved_port import reserved_port

pytestmark = [pytest.mark.only_on("sqlite"), pytest.mark.long]  # it starts a server of its own
PAGE = "recover.md"
HEADING = "From SQLite to PostgreSQL"
NEEDED = ("pg_createcluster", "pg_ctlcluster", "pgbackrest")
DEBIAN = Path("/usr/lib/postgresql/15/bin")
MUSICSVC = [sys.executable, "-m", "musicsvc"]


class Cluster:
    """A cluster of Debian's PostgreSQL 15 in a folder, with the settings that the page shows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._name = "music"
        self._environment = {
            "PATH": f"{os.environ['PATH']}:{DEBIAN}",  # noqa: TID251 - handed on
            "HOME": str(folder),
            "PG_CLUSTER_CONF_ROOT": str(folder / "etc"),
            "PGBACKREST_CONFIG": str(folder / "pgbackrest.conf"),
            "PGBACKREST_LOCK_PATH": str(folder / "lock"),
            "PGBACKREST_LOG_LEVEL_FILE": "off",
            "PGBACKREST_PG1_SOCKET_PATH": str(folder),
            "PGHOST": str(folder),
            "PGUSER": "postgres",
            "MUSICSVC_DATABASE_URL": "postgresql:///music",
            "MUSICSVC_DATA_DIR": str(folder / "musicsvc"),
        }
        for name in ("archive", "musicsvc"):
            (folder / name).mkdir()

    def run(self, *words: str) -> str:
        """Run a command, which must succeed. Return what it prints."""
        done = self.try_to(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def try_to(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command: those of PostgreSQL as its user."""
        own = words[0] == "musicsvc"
        command = [*MUSICSVC, *words[1:]] if own else list(words)
        user = None if own or os.geteuid() else "postgres"
        return subprocess.run(
            command,
            env=self._environment,
            cwd=self.folder / "musicsvc" if own else self.folder,
            user=user,
            group=user,
            extra_groups=[] if user else None,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run `musicsvc serve`."""
        with reserved_port() as port:
            self._environment["MUSICSVC_SERVER__PORT"] = str(port)
            with subprocess.Popen([*MUSICSVC, "serve"], env=self._environment) as process:
                try:
                    until(lambda: self.try_to("musicsvc", "healthcheck").returncode == 0)
                    yield
                finally:
                    process.terminate()

    def fill(self) -> None:
        """Create the database as docs/install.md does, and an account and an artist with a track."""
        create, export, init, _ = commands("install.md", "PostgreSQL")
        assert export == "export MUSICSVC_DATABASE_URL=postgresql://user@host/music"
        for line in (create, init):
            self.run(*shlex.split(line))
        self.run("musicsvc", "user", "create", "ann@label.test")
        (self.folder / "musicsvc" / "catalog.csv").write_text("artist,track\nMoor,Peat\n")
        self.run("musicsvc", "import", "catalog", "catalog.csv", "--user", "ann@label.test")

    def report_plays(self, count: int) -> None:
        """Import `count` new plays of the track."""
        first = self.plays()
        lines = [f"Moor,Peat,l{number},2026-01-31T1{number % 10}:00:00Z" for number in range(first, first + count)]
        text = "\n".join(["artist,track,listener,played_at", *lines])
        (self.folder / "musicsvc" / "plays.csv").write_text(text)
        self.run("musicsvc", "import", "plays", "plays.csv")

    def plays(self) -> int:
        return int(self.run("psql", "-Atc", "SELECT count(*) FROM play", self._name))

    def use_sqlite(self) -> None:
        """Use the database that `musicsvc` creates by default."""
        for name in ("MUSICSVC_DATABASE_URL", "MUSICSVC_DATA_DIR"):
            del self._environment[name]

    def use(self, name: str) -> None:
        self._name = name
        self._environment["MUSICSVC_DATABASE_URL"] = f"postgresql:///{name}"

    def create(self) -> None:
        """Create and start the cluster."""
        places = ["--datadir", str(self.folder / "data"), "--socketdir", str(self.folder)]
        options = ["-o", "listen_addresses=", "--logfile", str(self.folder / "log"), "--port", "5432"]
        self.run("pg_createcluster", "15", "main", *places, *options, "--locale", "C.UTF-8", "--", "--auth=trust")
        pgbackrest, archiving = blocks(PAGE, "Back to a moment", "ini")
        pgbackrest = pgbackrest.replace("/var/lib/pgbackrest", str(self.folder / "archive"))
        pgbackrest = pgbackrest.replace("/var/lib/postgresql/15/main", str(self.folder / "data"))
        (self.folder / "pgbackrest.conf").write_text(pgbackrest)
        etc = self.folder / "etc" / "15" / "main"
        (etc / "conf.d" / "archive.conf").write_text(archiving)
        # The archive command runs in the environment of the cluster.
        variables = [f"{name} = '{value}'\n" for name, value in self._environment.items() if "PGBACKREST" in name]
        (etc / "environment").write_text("".join(variables))
        self.run("pg_ctlcluster", "15", "main", "start")


def steps_to_a_moment() -> tuple[list[list[str]], list[list[str]]]:
    """Return the commands of the page that prepare for it, and those that go back."""
    steps = [shlex.split(line) for line in commands(PAGE, "Back to a moment")]
    stop = next(number for number, words in enumerate(steps) if words[-1] == "stop")
    return steps[:stop], steps[stop:]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or not DEBIAN.is_dir():
        pytest.skip(f"{' and '.join(missing) or 'PostgreSQL 15'} of Debian is not installed here")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # its user must reach it, by a short path
        made = Cluster(Path(folder))
        if not os.geteuid():
            owner = pwd.getpwnam("postgres")
            for place in (made.folder, *made.folder.iterdir()):
                os.chown(place, owner.pw_uid, owner.pw_gid)
        made.create()
        yield made
        made.run("pg_ctlcluster", "15", "main", "stop", "--mode", "immediate")


def test_a_server_is_ready_over_the_new_database(cluster: Cluster) -> None:
    cluster.fill()
    assert commands("install.md", "PostgreSQL")[-1] == "musicsvc serve"

    with cluster.serving():
        assert cluster.run("musicsvc", "healthcheck", "--ready")


def test_a_lost_data_folder_comes_back_with_every_archived_play(cluster: Cluster) -> None:
    cluster.fill()
    cluster.report_plays(7)
    for words in steps_to_a_moment()[0]:
        cluster.run(*words)
    cluster.report_plays(5)
    cluster.run("psql", "-c", "SELECT pg_switch_wal()", "music")
    cluster.run("pgbackrest", "--stanza=music", "check")  # it waits until all is archived
    cluster.run("pg_ctlcluster", "15", "main", "stop", "--mode", "immediate")
    cluster.run("sh", "-c", f"rm -rf {cluster.folder}/data/*")

    for line in commands(PAGE, "A lost PostgreSQL"):
        cluster.run(*shlex.split(line))

    assert cluster.plays() == 7 + 5


def test_plays_until_the_moment_are_back_and_later_ones_are_not(cluster: Cluster) -> None:
    cluster.fill()
    cluster.report_plays(7)
    before, after = steps_to_a_moment()
    for words in before:
        cluster.run(*words)
    cluster.report_plays(5)
    moment = cluster.run("psql", "-Atc", "SELECT clock_timestamp()", "music").strip()
    cluster.report_plays(3)

    for words in after:
        cluster.run(*[re.sub("(--target=).*", rf"\g<1>{moment}", word) for word in words])

    assert cluster.plays() == 7 + 5
    cluster.report_plays(2)
    assert cluster.plays() == 7 + 5 + 2


def test_a_dump_is_restored_as_another_database(cluster: Cluster) -> None:
    cluster.fill()
    cluster.report_plays(4)

    for line in commands(PAGE, "PostgreSQL"):
        cluster.run(*shlex.split(line))

    cluster.use("music_restored")
    cluster.run("musicsvc", "db", "check")
    assert cluster.plays() == 4


def test_a_database_of_sqlite_moves_to_postgresql(cluster: Cluster) -> None:
    cluster.use_sqlite()
    cluster.run("musicsvc", "init")
    cluster.run("musicsvc", "user", "create", "ann@label.test")

    steps = [shlex.split(line.replace("~", str(cluster.folder))) for line in commands("move.md", HEADING)]
    with cluster.serving():
        for words in steps[:2]:
            cluster.run(*words)
    for words in steps[2:]:
        cluster.run(*words)

    cluster.use("musicsvc")
    assert cluster.run("psql", "-Atc", "SELECT email FROM account", "musicsvc") == "ann@label.test\n"
    cluster.run("musicsvc", "db", "check")
