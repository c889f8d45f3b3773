"""Exports: their form, their scope, cells without formulas, and slow clients."""

import csv
import errno
import io
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import openpyxl
import pytest

from musicsvc.clock import DAY, MovableClock, isoformat
from musicsvc.errors import Unavailable
from musicsvc.reports import verification
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.server.shapes import spooled
from musicsvc.server.shapes.spooled import spool
from musicsvc.store.engine import bulk
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Track, TrackArtist
from musicsvc.store.plays.periods import SLOT
from tests.conftest import NOW
from tests.support import databases, export_files
from tests.support.listening_world import ALBUMS, TRACKS, Catalog, catalog
from tests.support.serving import Answer, Client, person

FIGURES = "plays_total,plays_period,listeners_total,listeners_period,likes,reposts,plays_change,listeners_change"
OF_TRACK = "isrc,upc,album,label,release_date"
HEADERS = {
    "tracks": f"track_id,track,artists,{FIGURES},{OF_TRACK},first_play,album_artists,external_id,album_external_id",
    "albums": f"album_id,album,artists,{FIGURES},upc,label,release_date,first_play",
    "artists": f"artist_id,artist,{FIGURES},first_play",
    "plays": f"date,track_id,track,artists,plays,listeners,{OF_TRACK}",
}


def some_months() -> Catalog:
    """Create the catalog of tests/support/listening_world.py with some months of plays, beside another account's."""
    chance = random.Random(5)
    catalog(NOW)
    made = catalog(NOW)
    heard = [
        (
            made.tracks[chance.randrange(4)],
            NOW - chance.randrange(70) * DAY - chance.randrange(1, 900) * SLOT,
            str(number % 30),
        )
        for number in range(300)
    ]
    made.add_plays(heard)
    made.give([(made.tracks[0], NOW)], [(made.tracks[3], NOW - DAY)])
    return made


@databases.prefilling
def prefilled(store: Store) -> Catalog:
    """Some months of plays, of which each test has a copy."""
    return store.write(some_months).result()


async def export(client: Client, name: str, body: Any = None) -> Answer:
    answer = await client.post(f"{INSIGHTS}/export/{name}", body)
    assert answer.status == 200, answer.body
    return answer


async def rows(client: Client, **body: str) -> list[list[str]]:
    """Return the lines of a CSV export."""
    return list(csv.reader(io.StringIO((await export(client, "csv", body)).body.decode(), newline="")))


async def test_the_formats_are_csv_json_and_pdf(ask: Client) -> None:
    answer = await ask.get(f"{INSIGHTS}/export/formats")

    assert answer.status == 200
    assert set(answer.json) == {"success", "formats"}
    assert answer.json["success"] is True
    assert [each["id"] for each in answer.json["formats"]] == ["csv", "json", "pdf"]
    assert all(set(each) == {"id", "name", "description"} for each in answer.json["formats"])


def credit(artists: tuple[int, ...]) -> str:
    return "; ".join(f"Artist {each}" for each in artists)


CODES = {  # of tracks: ISRC, UPC, album, label, release date
    "tracks": [
        ["DEZ992400001", "036000291452", "Album 0", "Rag & Sons", ""],
        ["", "036000291452", "Album 0", "Rag & Sons", ""],
        ["", "", "", "", "1911-02-03"],
        ["DEZ992400004", "", "Album 1", "", ""],
        ["", "", "", "", ""],
    ],
    "albums": [["036000291452", "Rag & Sons", ""], ["", "", ""]],
}
CREDITS = {
    "tracks": [[f"Track {each}", credit(artists)] for each, (_, artists) in enumerate(TRACKS)],
    "albums": [[f"Album {each}", credit(artists)] for each, artists in enumerate(ALBUMS)],
}


@pytest.mark.parametrize("type_", HEADERS)
async def test_a_csv_file_has_the_columns_of_its_type_and_a_row_for_each(
    ask: Client, made: Catalog, type_: str
) -> None:
    answer = await export(ask, "csv", {"type": type_, "period": "90-days"})

    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    name = f"musicsvc-{type_}-2025-12-02-to-2026-03-01.csv"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    assert answer.headers["Cache-Control"] == "no-store"
    found = await rows(ask, type=type_, period="90-days")
    assert found[0] == HEADERS[type_].split(",")
    assert len(found) > 2
    for line, raw in zip(found, answer.body.decode().split("\r\n"), strict=False):
        quoted = [name in export_files.TEXTS or line is found[0] for name in found[0]]
        cells = [f'"{cell}"' if is_text and cell else cell for cell, is_text in zip(line, quoted, strict=True)]
        assert raw == ",".join(cells)
    if type_ != "plays":
        expected = {"tracks": made.tracks, "albums": made.albums, "artists": made.artists}[type_]
        assert [int(row[0]) for row in found[1:]] == expected
        names = CREDITS.get(type_, [[f"Artist {each}"] for each in range(3)])
        assert [row[1 : 1 + len(of)] for row, of in zip(found[1:], names, strict=True)] == names
    if type_ in CODES:
        first, last = (found[0].index(name) for name in ("isrc" if type_ == "tracks" else "upc", "release_date"))
        assert [row[first : last + 1] for row in found[1:]] == CODES[type_]
    if type_ == "tracks":
        homes = ["" if album is None else credit(ALBUMS[album]) for album, _ in TRACKS]
        assert [row[-3:] for row in found[1:]] == [[home, "", ""] for home in homes]
    if type_ == "plays":
        of_tracks = dict(zip(map(str, made.tracks), CODES["tracks"], strict=True))
        assert [row[-5:] for row in found[1:]] == [of_tracks[row[1]] for row in found[1:]]


@pytest.mark.parametrize("type_", HEADERS)
async def test_json_holds_the_rows_of_the_csv_file_under_its_columns(
    ask: Client, clock: MovableClock, type_: str
) -> None:
    answer = await export(ask, "json", {"type": type_})
    data = answer.json["data"]
    header, *lines = await rows(ask, type=type_)

    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert "Content-Disposition" not in answer.headers  # browsers show it
    assert list(data) == ["type", "period", "generated_at", "rows", "verification"]
    assert data["verification"]["row_count"] == len(lines)
    assert data["verification"]["sha256"] == verification.of_rows(data["rows"]).hexdigest()
    assert set(data["verification"]["definitions"]) == set(header)
    assert data["type"] == type_
    assert data["period"]["name"] == "30-days"
    assert data["generated_at"] == isoformat(clock.now())
    assert lines
    assert [list(row) for row in data["rows"]] == [header] * len(lines)
    assert [["" if part is None else str(part) for part in row.values()] for row in data["rows"]] == lines


async def test_the_days_of_a_workbook_are_those_of_the_json_export(ask: Client) -> None:
    answer = await export(ask, "xlsx", {"type": "plays"})
    days = export_files.sheet_rows(openpyxl.load_workbook(io.BytesIO(answer.body))["plays"])
    assert days == (await export(ask, "json", {"type": "plays"})).json["data"]["rows"] != []


async def test_a_report_holds_days_and_listening_only_where_they_are_asked_for(ask: Client, made: Catalog) -> None:
    plain = (await export(ask, "report", {"period": "90-days"})).json["data"]
    asked = {"period": "90-days", "include_charts": True, "include_listening": True}
    whole = (await export(ask, "report", asked)).json["data"]

    assert list(plain) == ["period", "generated_at", "summary", "top_tracks"]
    assert list(whole) == [*plain, "charts", "listening", "hours", "milestones", "releases"]
    assert plain.items() <= whole.items()
    chart = whole["charts"]
    assert (chart["timeframe"], len(chart["points"])) == ("90d", 90)
    plays = sum(point["plays"] for point in chart["points"])
    assert (
        plays
        == chart["totals"]["plays"]
        == plain["summary"]["plays"]["period"]
        == sum(map(sum, whole["hours"]["hours"]))
    )
    assert chart["totals"]["listeners"] == plain["summary"]["listeners"]["unique"]
    assert (plain["summary"]["tracks_count"], plain["summary"]["albums_count"]) == (5, 2)
    assert {row["id"] for row in plain["top_tracks"]} == set(made.tracks[:4])
    assert {each["id"] for each in whole["milestones"] if each["kind"] == "track"} == set(made.tracks[:4])
    assert whole["releases"] == {"days": 28, "releases": []}  # no album has a release date


async def test_a_pdf_is_a_document_to_be_saved(ask: Client) -> None:
    answer = await export(ask, "pdf", {"period": "1-year"})

    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"].endswith('.pdf"')
    assert answer.body.startswith(b"%PDF-")
    assert (await export(ask, "pdf", {"period": "1-year"})).body == answer.body


@pytest.mark.parametrize("form", ["csv", "xlsx", "pdf"])
async def test_a_file_is_sent_as_bytes_to_a_client_that_accepts_nothing_else(ask: Client, form: str) -> None:
    path, only = f"{INSIGHTS}/export/{form}", {"Accept": "application/octet-stream"}
    usual, as_bytes = await ask.post(path, {}), await ask.post(path, {}, headers=only)
    several = await ask.post(path, {}, headers={"Accept": "application/json, application/octet-stream"})

    assert as_bytes.headers["Content-Type"] == "application/octet-stream"
    assert several.headers["Content-Type"] == usual.headers["Content-Type"] != as_bytes.headers["Content-Type"]
    assert as_bytes.headers["Content-Disposition"] == usual.headers["Content-Disposition"]
    assert as_bytes.body == usual.body == several.body
    assert (
        (await ask.post(f"{INSIGHTS}/export/json", {}, headers=only))
        .headers["Content-Type"]
        .startswith("application/json")
    )


async def test_an_account_that_manages_nothing_gets_empty_files(ask: Client, store: Store, clock: MovableClock) -> None:
    nobody = ask.holding(person(store, clock, "nobody@label.test")[1])

    for type_, header in HEADERS.items():
        assert (await export(nobody, "csv", {"type": type_})).body.decode() == '"{}"\r\n'.format(
            header.replace(",", '","')
        )
        assert (await export(nobody, "json", {"type": type_})).json["data"]["rows"] == []
    report = (await export(nobody, "report", {"include_charts": True})).json["data"]
    assert report["top_tracks"] == []
    assert report["summary"]["plays"] == {"total": 0, "period": 0}
    assert report["summary"]["growth"] == {"plays_change": None, "listeners_change": None, "first_play": None}
    assert (await export(nobody, "pdf", {"period": "1-year"})).body.startswith(b"%PDF-")


async def test_a_name_is_no_formula(ask: Client, store: Store, made: Catalog) -> None:
    for name in ('=HYPERLINK("a","b")', "+1", "-1", "@x", "a\n=1+1", "a\r@x", "\uff1d1", 'say "so", he said'):
        store.write(Track.update(name=name).where(Track.id == made.tracks[0]).execute).result()
        found = (await rows(ask))[1][1]
        assert all(line[:1] not in "=+-@\t\uff1d" or not line for line in found.splitlines())
        assert found.replace("'", "") == name
        assert (await export(ask, "json")).json["data"]["rows"][0]["track"] == name


async def test_a_fall_is_a_number_and_stays_one(ask: Client, store: Store, clock: MovableClock, made: Catalog) -> None:
    before = [(made.tracks[4], clock.now() - 40 * DAY - each * SLOT, str(each)) for each in range(3)]
    store.write(partial(made.add_plays, [*before, (made.tracks[4], clock.now(), "0")])).result()

    assert (await rows(ask))[5][9:11] == ["-66.7", "-66.7"]


@pytest.mark.slow
async def test_null_and_no_body_are_as_good_as_the_default_and_words_are_trimmed(ask: Client) -> None:
    nothing = dict.fromkeys(("type", "period", "from", "to", "include_charts", "include_listening"))
    default = {"type": "tracks", "period": "30-days", "include_charts": False}
    padded = {"type": " tracks\t", "period": "\n30-days ", "include_charts": False}
    for name in ("csv", "json", "xlsx", "report", "pdf"):
        assert len({(await export(ask, name, body)).body for body in (default, nothing, padded, {}, None)}) == 1


def fill(manager: int, tracks: int) -> None:
    """Create this many tracks of one artist, without plays."""
    artist = Artist.create(name="Prolific", manager=manager, created_at=0).id
    ids = bulk.ids(Track, tracks)
    named = [(each, "n" * 200, 1, 0) for each in ids]
    bulk.insert(Track, ("id", "name", "duration", "created_at"), named)
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, artist, 0) for each in ids])


@pytest.mark.slow
async def test_a_long_export_is_whole(ask: Client, store: Store, made: Catalog) -> None:
    store.write(lambda: fill(made.manager.user_id, 30_000)).result()
    lines = await rows(ask)
    assert len(lines) == 1 + 5 + 30_000
    assert len({line[0] for line in lines}) == len(lines)


def test_an_export_whose_writer_finds_no_disk_space_is_unavailable(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"PK"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(Unavailable, match="not enough disk space") as failure:
        spool(pieces(), tmp_path, "application/zip")
    assert "No space left on device" in failure.value.here


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "No space left on device"), Unavailable("Locked.")])
def test_an_export_that_fails_closes_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Exception
) -> None:
    files: list[SpooledTemporaryFile[bytes]] = []

    def opened(size: int, *, dir: str) -> SpooledTemporaryFile[bytes]:  # noqa: A002 - the name of tempfile
        files.append(SpooledTemporaryFile(size, dir=dir))  # noqa: SIM115 - `spool` closes it
        return files[-1]

    def pieces() -> Iterator[bytes]:
        yield bytes(spooled.IN_MEMORY + 1)
        raise fault

    monkeypatch.setattr(spooled, "SpooledTemporaryFile", opened)
    with pytest.raises(Unavailable):
        spool(pieces(), tmp_path, "text/csv")
    assert [file.closed for file in files] == [True]
