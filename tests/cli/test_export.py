"""`musicsvc export`: formats, scopes, complete files only, and errors."""

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import duckdb
import pypdf
import pytest

from musicsvc.cli import main
from musicsvc.cli.session import Session
from musicsvc.clock import DAY, Clock
from musicsvc.server.shapes.verification import report_rows
from musicsvc.store.accounts import users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Track
from musicsvc.store.plays.periods import to_date
from tests.cli.conftest import Run
from tests.support.listening_world import Catalog, catalog

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

Export = Callable[..., bytes]


@pytest.fixture
def made(store: Store) -> Catalog:
    """Create the catalog of tests/support/listening_world.py with recent plays, and one without plays."""
    now = Clock().now()

    def fill() -> Catalog:
        catalog(now)
        made = catalog(now)
        for day in range(5):
            made.add_plays((track, now - day * DAY, str(track + day)) for track in made.tracks[:4])
        Track.update(name="=1+1 Ω").where(Track.id == made.tracks[0]).execute()
        return made

    return store.write(fill).result()


@pytest.fixture
def export(store: Store, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Export:
    """Return a function that runs the command in the test process and returns its stdout."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)

    def run(*line: str) -> bytes:
        main.command().main(["export", *line], prog_name="musicsvc", obj=Session(), standalone_mode=False)
        sys.stdout.flush()
        return capfdbinary.readouterr().out

    return run


def email(store: Store, made: Catalog) -> str:
    return store.read(lambda: users.get(made.manager.user_id).email).result()


def test_a_parquet_file_has_the_rows_of_the_json_file_with_types(export: Export, made: Catalog, tmp_path: Path) -> None:
    assert made.tracks
    for type_ in ("tracks", "albums", "artists", "plays"):
        file = tmp_path / f"{type_}.parquet"
        export(type_, "-o", str(file))
        expected = json.loads(export(type_, "--format", "json"))["data"]["rows"]
        with duckdb.connect() as connection:
            found = connection.read_parquet(str(file))
            rows = [
                {
                    name: str(part) if isinstance(part, date) else part
                    for name, part in zip(found.columns, row, strict=True)
                }
                for row in found.fetchall()
            ]
            kinds = dict(zip(found.columns, map(str, found.types), strict=True))
        assert rows == expected
        assert {kinds[name] for name in ("date", "release_date") if name in kinds} <= {"DATE"}
        assert kinds.get("plays_total", "BIGINT") == "BIGINT"
        assert kinds.get("plays_change", "DOUBLE") == "DOUBLE"


def test_an_empty_parquet_file_has_its_columns(export: Export, tmp_path: Path) -> None:
    export("plays", "-o", str(tmp_path / "none.parquet"))
    with duckdb.connect() as connection:
        found = connection.read_parquet(str(tmp_path / "none.parquet"))
        assert found.columns[:6] == ["date", "track_id", "track", "artists", "plays", "listeners"]
        assert found.columns[6:] == ["isrc", "upc", "album", "label", "release_date"]
        assert found.fetchall() == []


def test_the_suffix_of_the_file_sets_the_format_unless_the_option_does(export: Export, tmp_path: Path) -> None:
    for name, more, begins in (
        ("a.pdf", (), b"%PDF"),
        ("a.json", (), b'{"success"'),
        ("a.JSON", (), b'{"success"'),
        ("a", (), b'"track_id",'),
        ("b.txt", ("--format", "PDF"), b"%PDF"),
        ("b.pdf", ("--format", "csv"), b'"track_id",'),
    ):
        assert export("tracks", "-o", str(tmp_path / name), *more) == b""
        assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_report_is_a_pdf_on_either_paper(export: Export, made: Catalog, tmp_path: Path) -> None:
    sizes = {"a4": (595, 842), "letter": (612, 792)}
    for paper, size in sizes.items():
        file = tmp_path / f"{paper}.pdf"
        export("report", "--artist", str(made.artists[1]), "--paper", paper, "-o", str(file))
        page = pypdf.PdfReader(file).pages[0]
        assert (round(page.mediabox.width), round(page.mediabox.height)) == size
        assert "Artist 1" in page.extract_text()
    assert pypdf.PdfReader(io.BytesIO(export("report"))).pages[0].mediabox.width < 600


def test_a_report_as_json_is_that_of_the_api_with_charts_and_verification(export: Export, made: Catalog) -> None:
    data = json.loads(export("report", "--artist", str(made.artists[0]), "--period", "7-days", "--format", "json"))
    report = data["data"]
    assert data["success"] is True
    of_api = ["period", "generated_at", "summary", "top_tracks", "charts"]
    assert list(report) == [*of_api, "listening", "hours", "milestones", "releases", "verification"]
    assert report["summary"]["plays"]["period"] == sum(point["plays"] for point in report["charts"]["points"]) > 0
    assert report["verification"]["type"] == "report"
    assert list(report["verification"]["definitions"]) == [
        *("summary", "top_tracks", "top_albums", "top_artists", "days", "totals"),
        *("listening", "hours", "milestones", "releases"),
    ]
    assert {row["section"] for row in report_rows(report)} <= report["verification"]["definitions"].keys()


def test_a_report_compares_the_chosen_albums(export: Export, made: Catalog, store: Store) -> None:
    played = to_date(Clock().now() // DAY - 2).isoformat()
    store.write(Album.update(release_date="2020-01-01").where(Album.id == made.albums[0]).execute).result()
    store.write(Album.update(release_date=played).where(Album.id == made.albums[1]).execute).result()

    def compared(*line: str) -> list[tuple[int, list[int]]]:
        found = json.loads(export("report", "--user", email(store, made), "--format", "json", *line))["data"][
            "releases"
        ]
        return [(each["id"], [point["day"] for point in each["points"]]) for each in found["releases"]]

    first, second = made.albums
    assert [album for album, _ in compared()] == [second]
    chosen = ["--release", str(first), "--release", str(second), "--release", str(first), "--release-days", "2"]
    assert compared(*chosen) == [(first, [0, 1]), (second, [0, 1])]


def test_a_failure_leaves_the_old_file_and_no_temporary_file(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "figures.csv"
    file.write_text("old")

    for line in (
        ("tracks", "--user", "nobody@label.test", "-o", str(file)),
        ("tracks", "--artist", "99", "-o", str(file)),
        ("tracks", "-o", str(folder / "no" / "x.pdf")),
    ):
        run("export", *line, expect=1)
    run("export", "report", "--format", "parquet", "-o", str(file), expect=2)

    assert file.read_text() == "old"
    assert list(folder.iterdir()) == [file]


WRITER = """
import pathlib, sys, time
from musicsvc.cli.output_file import open_output
with open_output(pathlib.Path(sys.argv[1])) as file:
    print(flush=True)
    time.sleep(600)
"""


def test_the_next_export_removes_what_a_killed_one_left(run: Run, tmp_path: Path) -> None:
    out, other = tmp_path / "[t].csv", tmp_path / ".[t].csv.old.part"
    other.touch()
    with ExitStack() as stack:
        line = [sys.executable, "-c", WRITER, str(out)]
        killed, alive = (stack.enter_context(subprocess.Popen(line, stdout=subprocess.PIPE)) for _ in "ab")
        for process in (killed, alive):
            stack.callback(process.kill)
            assert process.stdout
            assert process.stdout.readline()
        killed.terminate()
        killed.wait()
        run("export", "tracks", "-o", str(out))
        left = {each.name for each in tmp_path.glob(".*")}
    assert left == {other.name, f".[t].csv.{alive.pid}.part"}


def test_an_export_can_be_written_to_a_named_pipe(export: Export, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_bytes)
        export("tracks", "-o", str(pipe), "--format", "csv")
        assert read.result().startswith(b'"track_id",')
    assert pipe.is_fifo()


def test_an_artist_without_a_manager_can_be_exported(export: Export, store: Store, tmp_path: Path) -> None:
    artist = store.write(lambda: int(Artist.create(name="椎名林檎", created_at=0).id)).result()
    export("tracks", "--artist", str(artist), "--period", "1-year", "-o", str(tmp_path / "a.pdf"))
    assert (tmp_path / "a.pdf").stat().st_size > 10_000


def test_a_database_is_not_replaced_by_an_output(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "musicsvc.db"
    run("db", "backup", str(file))
    before = file.read_bytes()
    run("user", "create", "ada@example.test")
    for line in (["user", "export", "ada@example.test"], ["export", "tracks", "--format", "csv"]):
        refused = run(*line, "-o", str(file), expect=1).stderr
        assert refused == f"Error: {file} is a SQLite database and was left unchanged. Name another file to write.\n"
    assert file.read_bytes() == before


def test_data_of_an_account_is_readable_by_its_owner_only(run: Run, tmp_path: Path) -> None:
    run("user", "create", "ada@example.test")
    asked, first = tmp_path / "asked.json", tmp_path / "first.json"
    run("user", "export", "ada@example.test", "-o", str(asked))
    run("user", "delete", "ada@example.test", "--yes", "-o", str(first))
    assert [stat.S_IMODE(file.stat().st_mode) for file in (asked, first)] == [0o600] * 2


def test_an_output_file_keeps_its_mode_and_a_link_to_it(run: Run, tmp_path: Path) -> None:
    file, link, below = tmp_path / "file.csv", tmp_path / "link.csv", tmp_path / "file.csv" / "below.csv"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to("file.csv")
    run("export", "tracks", "-o", str(link))
    assert (link.is_symlink(), stat.S_IMODE(file.stat().st_mode)) == (True, 0o640)
    assert file.read_text("utf-8").startswith('"track_id"')
    assert run("export", "tracks", "-o", str(below), expect=1).stderr == f"Error: {below}: Not a directory.\n"
    link.unlink()
    link.symlink_to("link.csv")
    told = run("export", "tracks", "-o", str(link), expect=1).stderr
    assert told == f"Error: {link} is a link to itself. Name another file to write.\n"
    assert link.is_symlink()
