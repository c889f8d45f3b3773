"""A label in Chromium, with real names: it imports, corrects, merges, counts, compares, downloads and undoes."""

import csv
import gzip
import io
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import xlsxwriter

from musicsvc.clock import DAY, MovableClock, isoformat
from musicsvc.store.accounts import api_access, users
from musicsvc.store.engine.store import Store
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.security import sessions
from tests.browser.visit import Visit
from tests.support import oracle
from tests.support.command import run_in_process
from tests.support.pdf_text import printed

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

LABEL = "label@label.test"
HEADINGS = ("Title", "Artist", "ISRC", "Album", "Release Date", "Label", "Duration")
TWINS = {"CREAM", "Cream"}  # two artists of the data that are one
DAYS, PLAYS, LISTENERS = 60, 4_000, 2_000
FEBRUARY = "from=2026-02-01&to=2026-02-28"  # compared with January
PATIENCE = 900_000  # milliseconds for an import of the whole catalog on a busy machine


class Song(NamedTuple):
    """A row of the label's sheet. `length` in seconds."""

    title: str
    artist: str
    isrc: str
    album: str
    released: str
    length: int


class Heard(NamedTuple):
    """A row of the label's file of plays."""

    song: Song
    listener: str
    at: int


@pytest.fixture
def songs(shared_data: Callable[[str], Path], long: bool) -> list[Song]:
    """Return the tracks of spotify_songs, each once, with synthetic ISRCs: all with `--long`, else a tenth."""
    with gzip.open(shared_data("spotify_songs/spotify_songs.csv.gz"), "rt", encoding="utf-8", newline="") as file:
        rows = {row["track_id"]: row for row in csv.DictReader(file)}
    chosen = [row for row in rows.values() if long or drawn(row["track_artist"])]
    return [
        Song(
            row["track_name"],
            row["track_artist"],
            f"QZZZZ20{number:05}",
            row["track_album_name"],
            row["track_album_release_date"],
            int(row["duration_ms"]) // 1000,
        )
        for number, row in enumerate(chosen)
    ]


def drawn(artist: str) -> bool:
    return artist in TWINS or zlib.crc32(artist.encode()) % 10 == 0


@pytest.fixture
def heard(songs: list[Song], clock: MovableClock) -> list[Heard]:
    """Return plays of two months, without repeats, most of the first songs; songs of the same name are not played."""
    chance = random.Random(24)
    names = Counter((song.title, song.artist) for song in songs)
    played = [song for song in songs if names[song.title, song.artist] == 1 and ";" not in song.artist]
    played.sort(key=lambda song: song.artist not in TWINS)
    weights = [1 / (rank + 1) for rank in range(len(played))]
    last = clock.now() // DAY * DAY + DAY // 2 - 1  # the tests' clock stands at noon
    found = {
        (song.isrc, listener := f"listener {chance.randrange(LISTENERS)}", at // SLOT): Heard(song, listener, at)
        for song in chance.choices(played, weights, k=PLAYS)
        for at in [last - chance.randrange(DAYS * DAY - DAY // 2)]
    }
    return sorted(found.values(), key=lambda play: play.at)


@pytest.fixture
def label(visit: Callable[..., Visit], store: Store, clock: MovableClock) -> Visit:
    """Return a window in which a label is signed in that may report plays of others."""

    def sign_in() -> str:
        account = users.create(LABEL, now=clock.now())
        api_access.grant(account, plays=True, now=clock.now())
        return sessions.create(users.by_email(LABEL), address="127.0.0.1", agent="Tests/1.0", now=clock.now())

    window = visit(viewport={"width": 1280, "height": 900})
    window.add_cookie("musicsvc", store.write(sign_in).result())
    return window


def workbook(songs: Iterable[Song], path: Path) -> Path:
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("Catalog")
        sheet.write_row(0, 0, HEADINGS)
        for number, song in enumerate(songs, 1):
            length = f"{song.length // 60}:{song.length % 60:02}"
            cells = (song.title, song.artist, song.isrc, song.album, song.released, "Roots & Sons", length)
            for column, cell in enumerate(cells):
                sheet.write_string(number, column, cell)
    return path


def table(heard: Iterable[Heard], path: Path) -> Path:
    """Write the plays as the label gets them: by names, as the catalog had them when they were heard."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("artist", "track", "listener", "played_at", "duration_ms"))
        rows.writerows((*each.song[1::-1], each.listener, isoformat(each.at), 31_000) for each in heard)
    return path


def upload(window: Visit, file: Path, kind: str) -> str:
    """Import a file on the page; return the text of the result."""
    page = window.page
    page.goto("/import")
    page.get_by_label(kind).check()
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("button", name="Import the file").click(timeout=PATIENCE)
    page.get_by_role("button", name="Import another file").wait_for(timeout=PATIENCE)
    return page.get_by_role("main").inner_text()


def correct(window: Visit, song: Song, title: str) -> None:
    """Find the song on the pages by its ISRC and give it another title."""
    page = window.page
    page.goto(f"/insights?q={song.isrc}")
    page.get_by_role("main").get_by_role("link", name=song.title, exact=True).click()
    page.get_by_role("link", name="Edit this track").click()
    page.get_by_label("Name", exact=True).fill(title)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name=title, exact=True).wait_for()


def merge_twins(window: Visit) -> None:
    """Merge the artist CREAM into Cream, as the page of duplicates proposes."""
    page = window.page
    page.goto("/insights/duplicates?kind=artist")
    row = page.locator("[data-twins]", has=page.get_by_role("link", name="CREAM", exact=True))
    row.get_by_role("button", name="Compare").click()
    if page.get_by_role("heading", name="Cream into CREAM").count():
        page.get_by_role("button", name="The other way round").click()
    page.get_by_role("heading", name="CREAM into Cream").wait_for()
    page.get_by_role("button", name="Merge", exact=True).click()
    page.get_by_role("status").first.wait_for()


class Figures(NamedTuple):
    """Figures of February: plays, listeners, and the change of plays against January in percent."""

    plays: int
    listeners: int
    change: float | None


def recount(heard: Iterable[Heard]) -> Figures:
    """Count the rows of the file of plays."""
    months: dict[str, list[str]] = {"2026-01": [], "2026-02": [], "2026-03": []}
    for each in heard:
        months[isoformat(each.at)[:7]].append(each.listener)
    before, plays = len(months["2026-01"]), len(months["2026-02"])
    return Figures(plays, len({*months["2026-02"]}), oracle.growth(plays, before))


def shown(window: Visit) -> Figures:
    """Return the figures of the page."""
    figures = ("[data-figure='plays.period']", "[data-figure='listeners.unique']", "[data-growth]")
    plays, listeners, change = (window.page.locator(each).first.inner_text() for each in figures)
    sign = -1 if "\u2212" in change else 1
    return Figures(number(plays), number(listeners), sign * float(re.sub(r"[^0-9.]", "", change)))


def number(text: str) -> int:
    return int(text.replace(",", ""))


def download(window: Visit, name: str) -> bytes:
    """Press a button for a download. Return the file."""
    with window.page.expect_download() as started:
        window.page.get_by_role("button", name=name, exact=True).click()
    return started.value.path().read_bytes()


def compared(window: Visit, albums: Iterable[int]) -> dict[str, int]:
    """Compare albums on the pages. Return their plays by name."""
    chosen = "&".join(f"ids={album}" for album in albums)
    window.page.goto(f"/insights/compare?kind=album&{chosen}&{FEBRUARY}")
    rows = window.page.locator("[data-compared] tbody tr").all()
    names = [row.get_by_role("rowheader").get_by_role("link").inner_text() for row in rows]
    return dict(zip(names, [number(row.get_by_role("cell").first.inner_text()) for row in rows], strict=True))


def command(store: Store, clock: MovableClock, *line: str) -> Any:
    """Run a command and return its JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSICSVC_DATABASE_URL", store.url)
        done = run_in_process([*line, "--json"], clock=clock)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_label_brings_in_corrects_counts_and_takes_back(
    label: Visit, songs: list[Song], heard: list[Heard], store: Store, clock: MovableClock, tmp_path: Path
) -> None:
    page = label.page
    result = upload(label, workbook(songs, tmp_path / "catalog.xlsx"), "a catalog")
    assert f"Tracks\t{len(songs):,}\t0\t0\t0" in result
    wrong = heard[0].song
    right = wrong._replace(title="A corrected title")
    heard = [each._replace(song=right) if each.song == wrong else each for each in heard]
    correct(label, wrong, right.title)
    merge_twins(label)
    result = upload(label, table(heard, tmp_path / "plays.csv"), "plays")
    assert f"Plays\t{len(heard):,}\t0\t0\t0" in result

    page.goto(f"/insights?{FEBRUARY}")
    assert shown(label) == recount(heard)
    of_twins = [each for each in heard if each.song.artist in TWINS]
    page.get_by_role("link", name="Cream", exact=True).first.click()
    assert shown(label) == recount(of_twins)
    told = command(store, clock, "insights", "show", "artist", "Cream", "--period", "2026-02")
    assert told["plays"]["period"] == recount(of_twins).plays

    tracks = {row["isrc"]: row for row in csv.DictReader(io.StringIO(download(label, "CSV").decode("utf-8-sig")))}
    assert {*tracks} == {song.isrc for song in songs if song.artist in TWINS}
    for isrc, row in tracks.items():
        of_song = [each for each in of_twins if each.song.isrc == isrc and isoformat(each.at)[:7] == "2026-02"]
        assert (int(row["plays_period"]), row["label"]) == (len(of_song), "Roots & Sons")
    report = printed(download(label, "PDF"))
    assert "Cream" in report
    assert f"{recount(of_twins).plays:,}" in report

    names = sorted({(each.song.album, each.song.artist) for each in of_twins})[:3]
    found = {name: command(store, clock, "album", "search", name) for name, _ in names}
    ids = [next(row["id"] for row in found[name] if row["name"] == name) for name, _ in names]
    plays = Counter(each.song.album for each in of_twins if isoformat(each.at)[:7] == "2026-02")
    assert compared(label, ids) == {name: plays[name] for name, _ in names}

    page.goto("/import")
    page.get_by_role("link", name="Undo import 2").click()
    page.get_by_role("button", name="Undo import 2").click()
    page.get_by_text(re.compile("Undone:")).wait_for(timeout=PATIENCE)
    page.goto(f"/insights/artist/{told['id']}?{FEBRUARY}")
    page.get_by_text("Nobody has played this artist yet").wait_for()
    assert (label.errors, label.foreign) == ([], [])
