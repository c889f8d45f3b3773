"""The whole story of an installation that may write to its data folder only, under a uid without a name and a home."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import copy
from pathlib import Path
from typing import Self

import pytest

from tests.support import preloaded, read_only, workbooks
from tests.support.program import PATIENCE, Program, run, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs namespaces of Linux"),
]
UID = 12_345
API = "/api/v1/producer-intelligence/insights/export"
ANN = "ann@label.test"
HEADINGS = ("external_id", "track", "artist", "duration_ms")
ROWS = [[f"id-{number}", f"Song {number}", "Clara Wieck", 180_000 + number] for number in range(9)]
REFUSED = 5_000  # of 300 bytes; a megabyte of them stays in memory
ELSEWHERE = ("/tmp", "/var/tmp", "/dev/shm", "/")  # noqa: S108 - as documented


class Confined:
    """Runs the program where nothing but `folder` can be written."""

    def __init__(self, folder: Path) -> None:
        """Skip the test if this system has no namespaces. Check that nothing else can be written."""
        self._place = folder
        self._use(folder)
        attempts = " || ".join(f"touch {Path(place) / 'musicsvc-probe'}" for place in ELSEWHERE)
        done = self.run("/bin/sh", "-c", f"id -u; {attempts} || touch {folder}/mine")
        if done.returncode == read_only.MISSING:
            pytest.skip(f"a read-only root needs user namespaces: {done.stderr}")
        assert (done.returncode, done.stdout) == (0, f"{UID}\n"), done.stderr
        assert (folder / "mine").exists()
        self._programs = preloaded.ForkServer("programs", self.line(), self.variables)
        self.close = self._programs.close

    def _use(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.variables = {"PATH": os.defpath, "MUSICSVC_DATA_DIR": str(self.data)}

    def within(self, name: str) -> Self:
        """Return the same for a new folder in this one."""
        other = copy(self)
        other._use(self.folder / name)
        other.folder.mkdir()
        return other

    def line(self, *command: str) -> list[str]:
        return [sys.executable, read_only.__file__, str(self._place), str(UID), *command]

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        line = self.line(*command)
        return subprocess.run(line, capture_output=True, check=False, encoding="utf-8", env=self.variables, timeout=180)

    def __call__(self, *arguments: str, expect: int = 0, stdin: str = "") -> str:
        """Run a command, and return its result and its messages."""
        done = run(*arguments, stdin=stdin, seconds=180, start=self.start)
        assert done.returncode == expect, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def start(self, arguments: Sequence[str], out: int, err: int, given: int = subprocess.DEVNULL) -> preloaded.Process:
        return self._programs.start(arguments, self.variables, given, out, err)

    def serve(self, *options: str) -> Program:
        return Program(self.folder, "serve", "--port", "0", *options, start=self.start)

    def temporary(self) -> list[str]:
        """The names of temporary files."""
        return [file.name for file in (self.data / "temporary").iterdir()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confined]:
    with closing(Confined(tmp_path_factory.mktemp("place"))) as place:
        yield place


@pytest.fixture
def confined(place: Confined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Confined:
    monkeypatch.chdir("/")
    return place.within(tmp_path.name)


def write_catalogs(folder: Path) -> list[Path]:
    """Write a catalog as text and as a workbook."""
    rows = [HEADINGS, *ROWS]
    csv = folder / "a.csv"
    csv.write_text("\n".join(",".join(map(str, row)) for row in rows))
    return [csv, workbooks.write_xlsx(folder / "a.xlsx", rows)]


def write_plays(file: Path) -> Path:
    """Write an archive of ListenBrainz with 70 plays."""
    listens = [
        {
            "listened_at": 1_770_000_000 + 400 * number,
            "track_metadata": {"artist_name": "Clara Wieck", "track_name": f"Song {number % 9}"},
        }
        for number in range(70)
    ]
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("listens/2026/2.jsonl", "\n".join(map(json.dumps, listens)))
    return file


def post(root: str, token: str, path: str, body: object) -> bytes:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{root}{path}", json.dumps(body).encode(), headers)  # noqa: S310 - our server
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310 - the same
        content: bytes = response.read()
    return content


def export_everything(program: Confined) -> None:
    """Write an export in all formats, verify it, and write reports and a cover."""
    for form in ("csv", "json", "xlsx", "parquet"):
        program("export", "tracks", "--period", "all", "-o", str(program.folder / f"tracks.{form}"))
    assert "gives the same" in program("export", "verify", str(program.folder / "tracks.csv"))
    for form in ("xlsx", "pdf"):
        program("export", "report", "-o", str(program.folder / f"report.{form}"))
    cover = program.folder / "cover.jpg"
    program("cover", "--title", "Romances", "--artist", "Clara Wieck", "--template", "1", "-o", str(cover))
    assert cover.stat().st_size > 10_000


def import_everything(program: Confined) -> None:
    """Import catalogs, plays and a table of invalid rows."""
    for file in write_catalogs(program.folder):
        assert "9 rows read, 0 of them refused." in program("import", "catalog", str(file), "--user", ANN)
    plays = write_plays(program.folder / "plays.zip")
    assert "70 rows read, 0 of them refused." in program(
        "import", "plays", str(plays), "--listener", "ann", "--user", ANN
    )
    bad, refused = program.folder / "bad.csv", program.folder / "refused.csv"
    bad.write_text("\n".join([",".join(HEADINGS), *[f"id,{'x' * 300},Ann,1"] * REFUSED]))
    program("import", "catalog", str(bad), "--user", ANN, "--refused", str(refused), expect=1)
    assert len(refused.read_text().splitlines()) == REFUSED + 1
    program("export", "tracks", "--format", "parquet", "-o", str(program.folder / "again.parquet"))
    assert "9 rows read, 0 of them" in program(
        "import", "catalog", str(program.folder / "again.parquet"), "--user", ANN
    )


def serve_everything(program: Confined, token: str) -> None:
    """Serve exports and pictures, also after a reload."""
    with program.serve("--workers", "2") as server:
        root = server.root
        address = ("healthcheck", "--ready", "--timeout", "30s", "--url", root)
        assert ": ok (" in program(*address)
        for reloads in (1, 2):
            for form in ("csv", "json", "xlsx", "pdf"):
                assert len(post(root, token, f"{API}/{form}", {"period": "90-days"})) > 100
            cover = {"template_id": 1, "title": "Romances", "artist": "Clara Wieck"}
            picture = json.loads(post(root, token, "/api/v1/cover-art/preview", cover))["preview_url"]
            with urllib.request.urlopen(picture, timeout=PATIENCE) as response:  # noqa: S310 - our server
                assert response.read().startswith(b"\x89PNG")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: server.err.count("reloaded the settings") == reloads)  # noqa: B023 - it is asked at once
        assert server.end(signal.SIGTERM) == 0
        assert '"error"' not in server.err


@pytest.mark.only_on("sqlite")
def test_an_installation_that_may_write_to_its_data_folder_only(confined: Confined) -> None:
    confined("init")
    confined("user", "create", ANN, "--password-stdin", stdin="three romances")
    confined("access", "grant", ANN)
    (token,) = re.findall(r"msvc_\w+", confined("token", "create", ANN, "--name", "laptop"))
    import_everything(confined)
    export_everything(confined)
    backup = confined.folder / "backup.db"
    confined("db", "backup", str(backup))
    confined("db", "restore", str(backup), "--yes")
    assert "No differences." in confined("plays", "recount")
    assert "No problems found." in confined("db", "check")
    confined("doctor")
    serve_everything(confined, token)
    assert confined.temporary() == []


SORT = """
import apsw
from musicsvc.cli.session import Session
Session().settings()
count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT * FROM n"
rows = apsw.Connection(":memory:").execute(f"SELECT hex(i * 7919) || hex(zeroblob(20)) AS h FROM ({count}) ORDER BY h")
print(sum(1 for _ in rows))
"""  # more than SQLite sorts in memory


@pytest.mark.only_on("sqlite")
def test_large_queries_and_a_demo_find_room_in_the_data_folder(confined: Confined) -> None:
    confined("init")
    with confined.serve() as server:
        assert server.root
        (folder,) = confined.temporary()
        assert folder.startswith("musicsvc-counters-")
        server.end(signal.SIGKILL)
    query = confined.run(sys.executable, "-c", SORT)
    assert (query.returncode, query.stdout) == (0, "200000\n"), query.stderr
    with confined.serve() as server:
        assert server.root
        until(lambda: folder not in confined.temporary())
        assert server.end(signal.SIGTERM) == 0
    with confined.serve("--demo") as server:
        assert server.root
        assert any(name.startswith("musicsvc-scratch-") for name in confined.temporary())
        assert server.end(signal.SIGTERM) == 0
    assert confined.temporary() == []


@pytest.mark.only_on("postgres")
def test_a_server_over_postgresql_that_may_write_to_its_data_folder_only(confined: Confined, store_url: str) -> None:
    confined.data.mkdir()
    confined.variables["MUSICSVC_DATABASE_URL"] = store_url
    confined("user", "create", ANN, "--password-stdin", stdin="three romances")
    confined("access", "grant", ANN)
    (token,) = re.findall(r"msvc_\w+", confined("token", "create", ANN, "--name", "laptop"))
    confined("import", "catalog", str(write_catalogs(confined.folder)[0]), "--user", ANN)
    serve_everything(confined, token)
    assert confined.temporary() == []
    confined.variables["MUSICSVC_DATA_DIR"] = "/musicsvc-data"
    with confined.serve() as server:
        assert server.root
        warning = (
            "Warning: large exports and uploads need the data folder. The folder / is on a read-only disk: uid 12345"
        )
        assert server.err.startswith(warning)
        assert server.end(signal.SIGTERM) == 0


@pytest.mark.only_on("sqlite")
def test_a_data_folder_that_cannot_be_written_is_named_with_the_user_and_the_remedy(confined: Confined) -> None:
    confined.variables["MUSICSVC_DATA_DIR"] = "/musicsvc-data"
    fault = f"The folder / is on a read-only disk: uid {UID} may not write to it."
    remedy = "Mount a disk that this user may write to, or choose another folder"
    for command in (("init",), ("serve", "--init")):
        line = confined(*command, expect=1)
        assert line.startswith(f"Error: /musicsvc-data: Read-only file system. {fault} {remedy}")
        assert line.count("\n") == 1
    del confined.variables["MUSICSVC_DATA_DIR"]
    no_home = f"The user of this process (uid {UID}) has no home folder for a default data folder."
    assert confined("user", "list", expect=1) == f"Error: {no_home} Set MUSICSVC_DATA_DIR.\n"
