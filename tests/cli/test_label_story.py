"""A label imports a catalog and two months of plays, reports, sends and verifies, and takes two mistakes back."""

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from musicsvc.cli import reporting
from musicsvc.clock import MovableClock, parse
from musicsvc.reports.formats import FORMATS
from tests.cli.conftest import Json, Run
from tests.rights.world import PASSWORD
from tests.support import export_files, label_files
from tests.support.command import run_at, run_in_process
from tests.support.html_page import HtmlPage
from tests.support.label_files import write
from tests.support.oracle import Past
from tests.support.page_client import page_client
from tests.support.pdf_text import printed
from tests.support.program import Program, until

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]  # the same over either database


LABEL = "label@label.test"
MORNING = parse("2024-11-22T10:00:00Z")  # when the label reads its figures
MONTH = ("2024-10-01", "2024-10-31")
DATES = "from={}&to={}".format(*MONTH)
OPTIONS = ("--from", MONTH[0], "--to", MONTH[1])
PATIENCE = 120  # seconds; a busy machine is slow to start a process
SUBJECTS = (
    [("track", each) for each in range(1, 10)] + [("album", 1), ("album", 2)] + [("artist", n) for n in (1, 2, 3)]
)
PATHS = [
    *("genres", "albums", "artists/1/tracks", "tracks/5"),
    *(
        f"producer-intelligence/insights/{kind}s/{each}{part}?{dates}"
        for kind, each in SUBJECTS
        for part, dates in (
            ("", DATES),
            ("", "from=2024-08-20&to=2024-11-01"),
            ("/charts", DATES),
            ("/listening", DATES),
            ("/hours", "from=2024-09-30&to=2024-10-30"),
            ("/milestones", ""),
        )
    ),
    "producer-intelligence/insights/albums/1/release?against=2&days=50",
]


class Files(NamedTuple):
    """The label's files, and the figures that the first two must give."""

    catalog: str
    plays: str
    past: Past


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(MORNING, speed=0)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    catalog, plays = label_files.catalog(), label_files.plays(1500)
    return Files(
        write(tmp_path / "songs.csv", catalog), write(tmp_path / "streams.csv", plays), label_files.past(catalog, plays)
    )


def program(folder: Path, *line: str) -> str:
    """Run a command in a process of its own; return what it prints on stdout and stderr."""
    with Program(folder, *line) as command:
        assert command.process.wait(PATIENCE) == 0, command.err
        return command.out + command.err


def all_figures(clock: MovableClock, folder: Path) -> dict[str, Any]:
    """Return the answers of the commands and the bytes of the files about all figures of the label."""
    folder.mkdir()
    found: dict[str, Any] = {}
    for kind in ("track", "album", "artist"):
        found[f"show {kind}"] = run_at(clock, "insights", "show", kind, "1", "--period", "all", "--json")
        found[f"explain {kind}"] = run_at(clock, "insights", "explain", kind, "1", "--period", "2024-Q3", "--json")
    for type_, form in zip(export_files.TYPES, export_files.TABLES, strict=True):
        run_at(clock, "export", type_, "--period", "last-month", "-o", str(folder / f"{type_}.{form}"))
    for period in ("last-month", "90-days"):
        for form in ("pdf", "json"):
            run_at(clock, "export", "report", "--period", period, "-o", str(folder / f"{period}.{form}"))
    return found | {file.name: file.read_bytes() for file in folder.iterdir()}


def answers(root: str, token: str) -> Iterator[tuple[str, bytes]]:
    """Yield what the server answers about the catalog and all its figures."""
    for path in PATHS:
        request = urllib.request.Request(f"{root}/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - our server
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - our server
            yield path, answer.read()


async def opened_by_anybody(root: str) -> HtmlPage:
    """Sign in, share the artist's October by a link, and open the link in another browser."""
    async with page_client(root) as owner, page_client(root) as anybody:
        assert (await owner.sign_in(LABEL)).status == 303
        shared = await owner.post(f"/insights/artist/1/share?{DATES}", {"days": "7"})
        (link, *_) = re.findall(rf"{re.escape(root)}(/reports/[\w.-]+)", shared.body.decode())
        assert (await anybody.get("/insights/artist/1")).status == 303
        answer = await anybody.get(link)
        assert answer.status == 200
        return HtmlPage(answer.body)


def test_a_label_reports_october_against_september_and_takes_mistakes_back(
    run: Run, ask: Json, files: Files, clock: MovableClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_LIMITS__ENABLED", "false")
    run("user", "create", LABEL, "--password-stdin", stdin=PASSWORD)
    run("access", "grant", LABEL)
    token = ask("token", "create", LABEL, "--name", "label")["token"]
    run("import", "catalog", files.catalog, "--user", LABEL)
    read = program(tmp_path, "import", "plays", files.plays, "--user", LABEL)
    assert "1,500 rows read, 0 of them refused." in read

    sent = report_in_every_format(files.past, clock, tmp_path)
    find_a_late_play(ask, sent, tmp_path)

    before = all_figures(clock, tmp_path / "before")
    with Program(tmp_path, "serve", "--port", "0") as server:
        page = asyncio.run(opened_by_anybody(server.root))
        figures = files.past.figures("artist", 1, MONTH, MORNING)
        assert page.figures["plays.period"] == str(figures["plays"]["period"])
        assert page.growth == [f"{figures['growth'][f'{name}_change']:+} %" for name in ("plays", "listeners")]

        served = dict(answers(server.root, token))
        twice, wrong, changed = make_mistakes(ask, files, tmp_path)
        until(lambda: any(body != served[path] for path, body in answers(server.root, token)), PATIENCE)
        for number in (changed, twice):
            assert ask("import", "undo", str(number))["import"]["state"] == "undone"
        (tmp_path / "undo").mkdir()
        assert f"Import {wrong} is undone" in program(tmp_path / "undo", "import", "undo", str(wrong))
        assert all_figures(clock, tmp_path / "after") == before
        until(lambda: all(body == served[path] for path, body in answers(server.root, token)), PATIENCE)

    assert run("plays", "recount", "--check").stderr.endswith("No differences.\n")
    assert run("db", "check").stderr.endswith("No problems found.\n")
    states = [(row["id"], row["kind"], row["state"]) for row in ask("import", "list")]
    undone = [(6, "catalog", "undone"), (5, "plays", "undone"), (4, "plays", "undone"), (3, "plays", "undone")]
    assert states == [*undone, (2, "plays", "done"), (1, "catalog", "done")]
    for file in sent:
        assert "gives the same." in run("export", "verify", str(file)).stderr


def report_in_every_format(past: Past, clock: MovableClock, folder: Path) -> list[Path]:
    """Export all figures of October; return the files after comparing them with the label's plays."""
    files = []
    for type_ in export_files.TYPES:
        expected = export_files.expected(past, type_, MONTH, MORNING)
        for form in (each for each in FORMATS if each != "pdf"):
            files.append(folder / f"{type_}.{form}")
            run_at(clock, "export", type_, "--period", "2024-10", "--user", LABEL, "-o", str(files[-1]))
            rows = export_files.rows(files[-1])
            wanted = [export_files.for_people(row, MONTH, MORNING) if form == "xlsx" else row for row in expected]
            assert [{name: row[name] for name in wanted[0]} for row in rows] == wanted
    pdf, report = folder / "report.pdf", folder / "report.json"
    run_at(clock, "export", "report", "--period", "2024-10", "--user", LABEL, "-o", str(pdf))
    run_at(clock, "export", "report", *OPTIONS, "--user", LABEL, "-o", str(report))
    figures = past.figures("artist", 0, MONTH, MORNING)
    summary = json.loads(report.read_bytes())["data"]["summary"]
    assert figures.pop("period") == {"name": "custom", "start": MONTH[0], "end": MONTH[1]}
    assert {name: summary[name] for name in figures} == figures
    growth = f"{figures['growth']['plays_change']:+} % vs September 2024"
    assert f"Plays {figures['plays']['period']:,} {growth}" in printed(pdf.read_bytes())
    others = [folder / f"report.{form}" for form in reporting.FORMATS if form not in {"pdf", "json"}]
    for file in others:
        run_at(clock, "export", "report", "--period", "2024-10", "--user", LABEL, "-o", str(file))
    return [*files, *others, pdf, report]


def find_a_late_play(ask: Json, files: list[Path], folder: Path) -> None:
    """Import a play of the last second of October; each file then names what differs, until it is undone."""
    late = [{"isrc": "GBLBL2400004", "played_at": "2024-10-31T23:59:59.9Z", "listener": "somebody new"}]
    rows = {
        "tracks": {"5"},
        "albums": {"1"},
        "artists": {"2"},
        "plays": {"2024-10-31 5"},
        "report": {"summary", "totals", "days 2024-10-31", "top_tracks 5", "listening", "hours Thursday"},
    }
    only_in_print = {"top_albums 1", "top_artists 2"}
    assert "gives the same." in run_in_process(["export", "verify", str(files[-2])]).stderr
    mistake = ask("import", "plays", write(folder / "late.csv", late))["import"]
    for file in files:
        done = run_in_process(["export", "verify", str(file), "--json"])
        found = {each["row"] for each in json.loads(done.stdout)["differences"]}
        expected = rows[file.stem]
        if file.stem == "report":
            expected = expected | (only_in_print if file.suffix != ".json" else set())
        elif file.suffix not in {".csv", ".json"}:
            expected = {"all"}  # the checksum tells that rows differ, but not which
        assert (done.returncode, file.name, found) == (1, file.name, expected)
    ask("import", "undo", str(mistake))


def make_mistakes(ask: Json, files: Files, folder: Path) -> list[int]:
    """Import the plays twice, somebody else's plays, and a catalog with other names and lengths; return the ids."""
    twice = ask("import", "plays", files.plays, "--user", LABEL)
    assert (twice["plays"]["new"], twice["plays"]["repeated"]) == (0, 1500)
    others = write(folder / "others.csv", label_files.plays_of_others(300))
    wrong = ask("import", "plays", others, "--user", LABEL, "--create-missing")
    assert (wrong["plays"]["new"], wrong["tracks"]["new"]) == (300, 1)
    old = [
        row | {"track": f"{row['track']} (demo)", "duration_ms": 30_000, "album": f"{row['album']}, early"}
        for row in label_files.catalog()
    ]
    changed = ask("import", "catalog", write(folder / "old.csv", old), "--user", LABEL)
    assert (changed["tracks"]["changed"], changed["albums"]["changed"]) == (9, 2)  # albums by their UPC
    return [each["import"] for each in (twice, wrong, changed)]
