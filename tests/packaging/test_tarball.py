"""`packaging/build tarball`: the program runs where there is no Python."""

import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from tests.faults import callers
from tests.packaging import clean
from tests.packaging.installed import Installed
from tests.support.page_commands import commands
from tests.support.program import Program, is_running, until
from tests.support.reloads import reload
from tests.support.workbooks import write_xlsx

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
FILES = {"out.csv": b"", "out.xlsx": b"PK", "out.parquet": b"PAR1", "out.pdf": b"%PDF"}
PASSWORD = "correct horse battery staple\n"
TRACKS = [("external_id", "track", "artist"), ("1", "Träumerei", "Clara Schumann"), ("2", "花", "滝廉太郎")]
CALLERS = 4
COMPLETION = {"_MUSICSVC_COMPLETE": "source_bash"}


@pytest.fixture
def archive(build: Callable[[str], Path]) -> Path:
    (archive,) = build("deb").glob(f"musicsvc-{VERSION}-linux-*-glibc*.tar.xz")
    return archive


@pytest.fixture(params=["clean Debian", "empty path"])
def enter(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    folder_of_run: Path,
    archive: Path,
    store_url: str,
) -> list[str]:
    """Return how commands begin: in a Debian with nothing but its required packages, or just as they are."""
    if request.param == "empty path":
        return []
    socket = [Path(folder) for folder in parse_qs(urlsplit(store_url).query).get("host", [])]
    return clean.inside(clean.debian(folder_of_run), [tmp_path, archive.parent, *socket])


@pytest.fixture
def unpacked(tmp_path: Path, archive: Path, enter: list[str]) -> Path:
    """Run the first of the two commands of the page in an empty folder; return the path of the second's program."""
    unpack, serve = commands("install.md", "Tarball")
    assert serve == "./musicsvc serve --demo"
    (tmp_path / "dist").symlink_to(archive.parent)
    run = [*enter, "sh", "-ec", f"cd '{tmp_path}' && {unpack} && pwd"]
    folder = subprocess.run(run, check=True, timeout=600, capture_output=True, text=True).stdout
    return Path(folder.strip(), "musicsvc")


def test_the_program_does_all_without_python(
    tmp_path: Path, enter: list[str], unpacked: Path, new_database: Callable[..., str]
) -> None:
    variables = {"HOME": str(tmp_path)} | ({} if enter else {"PATH": "/nowhere"})
    bare = Installed(tmp_path, *enter, unpacked, variables=variables)
    assert bare.run("--version") == f"musicsvc {VERSION}\n"
    bare.answers_the_printed_command()
    assert "COMPREPLY" in Installed(tmp_path, *enter, unpacked, variables=COMPLETION).run()
    data = {"MUSICSVC_DATA_DIR": str(tmp_path / "data"), "MUSICSVC_DATABASE_URL": new_database(migrated=False)}
    program = Installed(tmp_path, *enter, unpacked, variables={**variables, **data})
    _use(program, tmp_path)
    _serve(program)


def _use(program: Installed, folder: Path) -> None:
    """Set up a service, read a workbook, and write every format."""
    program.run("init")
    program.run("user", "create", "ann@label.test", "--admin", "--password-stdin", stdin=PASSWORD)
    program.run("access", "grant", "ann@label.test")
    assert program.run("token", "create", "ann@label.test", "--name", "laptop").startswith("msvc_")
    tracks = write_xlsx(folder / "tracks.xlsx", TRACKS)
    program.run("import", "catalog", str(tracks), "--user", "ann@label.test")
    program.run("seed")
    for name, begin in FILES.items():
        program.run("export", "tracks", "-o", str(folder / name))
        assert (folder / name).read_bytes().startswith(begin), name
    assert "Träumerei" in (folder / "out.csv").read_text("utf-8")
    program.run("export", "verify", str(folder / "out.pdf"))
    program.run("import", "catalog", str(folder / "out.parquet"), "--dry-run")
    program.run("cover", "--title", "花", "--artist", "滝廉太郎", "--template", "1", "-o", str(folder / "cover.jpg"))
    findings = json.loads(program.try_to("doctor", "--json").stdout)["findings"]
    problems = {each["check"] for each in findings if each["level"] not in {"ok", "warning"}}
    assert problems <= {"pragmas"}  # the PostgreSQL of the tests writes without fsync


def _serve(program: Installed) -> None:
    with program.start("serve", "--port", "0", "--workers", "2") as server:
        root = server.root
        until(lambda: len(server.workers) == 2)
        before = server.workers
        program.run("healthcheck", "--url", root, "--ready", "--timeout", "60s")
        reload(server)
        until(lambda: not set(before) & set(server.workers) and len(server.workers) == 2)
        program.run("healthcheck", "--url", root, "--ready", "--timeout", "60s")
        assert server.end(signal.SIGTERM) == 0


def test_a_killed_program_has_lost_nothing_that_it_acknowledged_and_leaves_no_worker(
    tmp_path: Path, enter: list[str], unpacked: Path, store_url: str
) -> None:
    with opening.connect(store_url) as store:
        accounts = store.write(lambda: callers.prepare(CALLERS, Clock().now())).result()
    variables = {"HOME": str(tmp_path), "MUSICSVC_DATA_DIR": str(tmp_path / "data"), "MUSICSVC_DATABASE_URL": store_url}
    program = Installed(tmp_path, *enter, unpacked, variables=variables)
    those = [callers.Caller(at, account, "frozen", {}) for at, account in enumerate(accounts)]
    with program.start("serve", "--port", "0", "--workers", "2") as server:
        _kill_at_work(server, those)
    with opening.connect(store_url) as store:
        assert callers.faults(store, those) == []


def _kill_at_work(server: Program, those: list[callers.Caller]) -> None:
    """Kill the first process while clients write, and wait for the others, which notice it by themselves."""
    port = int(server.root.rpartition(":")[2])
    gone = threading.Event()
    threads = [threading.Thread(target=caller.work, args=(callers.Connection(port), gone)) for caller in those]
    for thread in threads:
        thread.start()
    until(lambda: sum(effect.acknowledged for caller in those for effect in tuple(caller.effects)) > 50)
    workers = server.workers
    os.kill(server.process.pid, signal.SIGKILL)
    until(lambda: not any(map(is_running, workers)))
    gone.set()
    for thread in threads:
        thread.join(30)
    assert len(workers) == 2


@pytest.mark.only_on("sqlite")
def test_the_archive_names_what_it_needs_and_has_the_licences(build: Callable[[str], Path]) -> None:
    folder = build("deb")
    (archive,) = folder.glob("musicsvc-*.tar.xz")
    libc = os.confstr("CS_GNU_LIBC_VERSION")
    assert libc
    assert archive.name == f"musicsvc-{VERSION}-linux-{os.uname().machine}-{libc.replace(' ', '')}.tar.xz"
    licences = (folder / "THIRD_PARTY_LICENSES").read_text("utf-8")
    parts = re.findall(r"^  (\S.*?) (\S+): .", licences, re.MULTILINE)
    named = {name for name, _ in parts}
    assert {"aiohttp", "apsw", "CPython", "duckdb", "htmx.org", "psycopg-binary", "pyinstaller", "uvloop"} <= named
    for text in ("Apache License", "SIL OPEN FONT LICENSE", "PYTHON SOFTWARE FOUNDATION LICENSE", "OpenSSL"):
        assert text in licences, text
    listed = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines())
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    assert listed == {name: digest for name, digest in files.items() if name != "SHA256SUMS"}
