"""`musicsvc export verify`: what differs between an export file and the database."""

import csv
import io
import json
from codecs import BOM_UTF8
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import openpyxl
import pypdf
import pytest

from musicsvc.clock import DAY, MovableClock, isoformat
from musicsvc.server.handlers import exports
from musicsvc.server.schemas.exports import ExportIn
from musicsvc.store.accounts import users
from musicsvc.store.catalog import tracks
from musicsvc.store.editing import deletions
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Track
from musicsvc.store.plays import retention
from musicsvc.store.plays.periods import SLOT
from tests.conftest import NOW
from tests.support import databases, export_files
from tests.support.command import run_in_process
from tests.support.export_files import Rows
from tests.support.listening_world import Catalog, catalog

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

FORMATS = ("csv", "json", "xlsx", "parquet")
TYPES = ("tracks", "albums", "artists", "plays")


Export = Callable[..., CompletedProcess[str]]


@databases.prefilling
def prefilled(store: Store) -> Catalog:
    def fill() -> Catalog:
        made = catalog(NOW)
        for number, track in enumerate(made.tracks):
            made.add_plays(
                (track, NOW - day * DAY - each * SLOT, str(each % 4))
                for day in (1, 3, 8)
                for each in range(2 + number + day)
            )
        Track.update(name="=1+1; 'Ω'").where(Track.id == made.tracks[0]).execute()
        Album.update(label="=A1").where(Album.id == made.albums[1]).execute()
        return made

    return store.write(fill).result()


@pytest.fixture
def export(store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch) -> Export:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)
    return lambda *line, group="export": run_in_process([group, *line], clock=clock)


def differences(done: CompletedProcess[str]) -> list[Any]:
    found: list[Any] = json.loads(done.stdout)["differences"]
    return [tuple(each.values()) for each in found]


@pytest.mark.slow
def test_a_play_makes_just_its_rows_differ_in_every_format(
    export: Export, made: Catalog, store: Store, clock: MovableClock, tmp_path: Path
) -> None:
    files = [tmp_path / f"{type_}.{form}" for type_ in TYPES for form in FORMATS]
    files += [tmp_path / f"report.{form}" for form in ("pdf", "json", "xlsx", "csv")]
    for file in files:
        export(file.stem, "--period", "7-days", "-o", str(file))
        done = export("verify", str(file))
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.endswith(", and the database gives the same.\n")
    exported = clock.now()
    clock.advance(40 * DAY)  # the window stays the same
    track = made.tracks[0]
    store.write(lambda: made.add_plays([(track, exported - DAY - 900 * SLOT, "new")])).result()

    expected: dict[str, list[Any]] = {}
    for file in files:
        done = export("verify", str(file), "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout)["file_unchanged"] is True
        expected.setdefault(file.stem, differences(done))
        if file.stem == "report":
            continue
        if file.suffix in {".csv", ".json"}:
            assert differences(done) == expected[file.stem]
        else:
            assert [each[:2] for each in differences(done)] == [("all", "sha256")]
            assert export("verify", str(file)).stderr == "The database gives other rows now. The file is unchanged.\n"
    assert [each for each in expected["tracks"] if "change" not in each[1]] == [
        (str(track), "plays_total", 18, 19),
        (str(track), "plays_period", 8, 9),
        (str(track), "listeners_total", 4, 5),
        (str(track), "listeners_period", 4, 5),
    ]
    day = isoformat(exported - DAY)[:10]
    assert expected["plays"] == [(f"{day} {track}", "plays", 3, 4), (f"{day} {track}", "listeners", 3, 4)]
    assert (f"days {day}", "plays", 25, 26) in expected["report"]
    assert ("summary", "listeners.unique", 4, 5) in expected["report"]
    table = export("verify", str(tmp_path / "plays.csv"))
    assert table.stdout.splitlines()[1].split() == [day, str(track), "plays", "3", "4"]
    assert table.stderr == f"1 row of {count(made)} rows differs now. The file is unchanged.\n"


@pytest.mark.parametrize("type_", ["tracks", "report"])
def test_a_csv_file_with_a_byte_order_mark_is_read_back(
    export: Export, made: Catalog, tmp_path: Path, type_: str
) -> None:
    assert made.tracks
    marked, plain = tmp_path / "marked.csv", tmp_path / "plain.csv"
    export(type_, "--bom", "-o", str(marked))
    export(type_, "-o", str(plain))
    assert marked.read_bytes() == BOM_UTF8 + plain.read_bytes()
    assert not plain.read_bytes().startswith(BOM_UTF8)
    done = export("verify", str(marked))
    assert (done.returncode, done.stderr.endswith(", and the database gives the same.\n")) == (0, True)
    wrong = export(type_, "--bom", "-o", str(tmp_path / "a.pdf"))
    assert (wrong.returncode, "PDF has no byte order mark; only CSV has." in wrong.stderr) == (2, True)


def count(made: Catalog) -> int:
    return 2 * len(made.tracks)  # with plays on two days of the window


@pytest.mark.slow
def test_plays_of_deleted_tracks_have_a_row_so_that_rows_add_up(
    export: Export, made: Catalog, store: Store, tmp_path: Path
) -> None:
    email = store.read(lambda: users.get(made.manager.user_id).email).result()
    scopes = {"all": (), "artist": ("--artist", str(made.artists[0])), "user": ("--user", email)}

    def exported(type_: str, scope: str, form: str = "json") -> Rows:
        file = tmp_path / f"{scope}-{type_}.{form}"
        export(type_, "--period", "7-days", *scopes[scope], "-o", str(file))
        assert export("verify", str(file)).returncode == 0
        return export_files.rows(file)

    def sums(rows: Rows, *columns: str) -> list[int]:
        return [sum(row[column] for row in rows) for column in columns]

    before = {(type_, scope): exported(type_, scope) for type_ in TYPES for scope in scopes}
    gone = made.tracks[:2]
    for track in gone:
        store.write(partial(delete, track)).result()
    for scope in scopes:
        rows = exported("tracks", scope)
        plays = "plays_total", "plays_period"
        assert sums(rows, *plays) == sums(before["tracks", scope], *plays), scope
        assert rows[:-1] == [row for row in before["tracks", scope] if row["track_id"] not in gone]
        lost = [row for row in before["tracks", scope] if row["track_id"] in gone]
        nulls = dict.fromkeys(rows[0]) | {"track": "(deleted tracks)", "artists": ""}
        assert rows[-1] == nulls | dict(zip(plays, sums(lost, *plays), strict=True))
        days = exported("plays", scope)
        assert [row for row in days if row["track_id"]] == [
            row for row in before["plays", scope] if row["track_id"] not in gone
        ]
        dates = sorted({row["date"] for row in before["plays", scope]})
        last = [[row for row in days if row["date"] == date][-1] for date in dates]
        assert [row for row in days if row["track_id"] is None] == last
        for date, shown in zip(dates, last, strict=True):
            lost = [row for row in before["plays", scope] if row["date"] == date and row["track_id"] in gone]
            assert shown == dict.fromkeys(shown) | {
                "date": date, "track": "(deleted tracks)", "artists": "", "plays": sums(lost, "plays")[0],
            }  # fmt: skip
        for type_ in ("tracks", "plays"):
            whole = [{**row, "label": None} for row in exported(type_, scope)]  # CSV defuses one
            for form in ("csv", "xlsx", "parquet"):
                found = [
                    {**row, "artists": row["artists"] or "", "label": None} for row in exported(type_, scope, form)
                ]
                wanted = [export_files.for_people(row, "7-days", NOW) if form == "xlsx" else row for row in whole]
                assert [{name: row[name] for name in whole[0]} for row in found] == wanted, (scope, form)
        assert all(row["album_id"] for row in exported("albums", scope))
        assert all(row["artist_id"] for row in exported("artists", scope))

    changed = tmp_path / "all-tracks.csv"
    store.write(lambda: delete(made.tracks[2])).result()
    wrong = differences(export("verify", str(changed), "--json"))
    assert ("(deleted tracks)", "plays_total") in [each[:2] for each in wrong]
    assert [each for each in wrong if each[1] == "row"] == [(str(made.tracks[2]), "row", "present", "missing")]


def delete(track: int) -> None:
    deletions.delete(tracks.get(track), now=NOW, account=None, actor="cli")


@pytest.mark.parametrize("kind", ["artist", "album", "track"])
def test_a_file_of_the_api_that_is_limited_to_a_subject_is_verified_with_its_limit(
    export: Export, made: Catalog, store: Store, clock: MovableClock, tmp_path: Path, kind: str
) -> None:
    each = {"artist": made.artists, "album": made.albums, "track": made.tracks}[kind][0]
    for type_ in TYPES:
        body = ExportIn(**{"type": type_, f"{kind}_id": each})
        write = partial(exports.export_table("json"), body, made.manager, clock.now(), tmp_path)
        file = tmp_path / f"{type_}.json"
        with store.read(write).result().file as answer:
            file.write_bytes(answer.read())
        found = json.loads(file.read_bytes())["data"]
        assert found["verification"]["scope"][f"{kind}_id"] == each
        assert bool(found["rows"]) == (type_ in {"tracks", "plays", f"{kind}s"} or kind == "artist")
        assert differences(export("verify", str(file), "--json")) == []


@pytest.mark.usefixtures("made")
def test_a_file_from_before_a_column_was_added_is_verified_without_it(export: Export, tmp_path: Path) -> None:
    file = tmp_path / "plays.csv"
    export("plays", "-o", str(file))
    header, *lines = csv.reader(io.StringIO(file.read_text(), newline=""))
    place = header.index("artists")
    quoted = [[f'"{cell}"' for cell in line[:3]] + line[4:] for line in lines]
    names = [f'"{name}"' for name in header[:place] + header[place + 1 :]]
    file.write_text("\r\n".join([",".join(names), *map(",".join, quoted), ""]), newline="")
    meta_file = tmp_path / "plays.csv.meta.json"
    meta = json.loads(meta_file.read_bytes())
    assert meta["definitions"].pop("artists") == "The names of the artists, separated by '; '."
    meta_file.write_text(json.dumps(meta))

    ((row, column, _, checksum),) = differences(export("verify", str(file), "--json"))
    assert (row, column) == ("all", "sha256")
    meta_file.write_text(json.dumps({**meta, "sha256": checksum}))
    assert differences(export("verify", str(file), "--json")) == []
    file.write_text(file.read_text().replace("Track 2", "Track II"))
    changed = {tuple(each[1:]) for each in differences(export("verify", str(file), "--json"))}
    assert changed == {("track", "Track II", "Track 2")}


def test_a_changed_file_is_found_out(export: Export, made: Catalog, tmp_path: Path) -> None:
    csv, *others = (tmp_path / f"a.{form}" for form in ("csv", "xlsx", "parquet", "pdf"))
    for type_, file in (("plays", csv), *zip(("tracks", "albums", "report"), others, strict=True)):
        export(type_, "--artist", str(made.artists[0]), "-o", str(file))
    csv.write_bytes(csv.read_bytes().replace(b",5,4,", b",6,4,", 1))
    done = export("verify", str(csv), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["file_unchanged"] is False
    assert [each[1] for each in differences(done)] == ["plays"]
    for file in others:
        file.write_bytes(file.read_bytes() + b" ")
        assert "was changed after it was written" in export("verify", str(file)).stderr


def test_what_describes_an_export_is_beside_it_and_in_json_also_inside(
    export: Export, made: Catalog, clock: MovableClock, tmp_path: Path
) -> None:
    for type_ in ("tracks", "report"):
        file = tmp_path / f"{type_}.json"
        export(type_, "--artist", str(made.artists[1]), "--period", "7-days", "-o", str(file))
        beside = json.loads((tmp_path / f"{type_}.json.meta.json").read_bytes())
        inside = json.loads(file.read_bytes())["data"]["verification"]
        assert {**inside, "file": beside["file"]} == beside
        scope = {"user_id": None, "artist_id": made.artists[1]}
        assert inside["scope"] == {**scope, "album_id": None, "track_id": None}
        (tmp_path / f"{type_}.json.meta.json").write_text(json.dumps({**beside, "scope": scope}))  # an older file
        assert export("verify", str(file)).returncode == 0
        assert inside["generated_at"] == isoformat(clock.now())
        (tmp_path / f"{type_}.json.meta.json").unlink()
        assert export("verify", str(file)).returncode == 0
    rows = json.loads((tmp_path / "tracks.json").read_bytes())["data"]["rows"]
    assert inside["row_count"] != len(rows) > 0
    assert set(json.loads((tmp_path / "tracks.json").read_bytes())["data"]["verification"]["definitions"]) == set(
        rows[0]
    )


@pytest.mark.parametrize(
    "period",
    [
        ("2026-02",),
        ("this-month",),
        ("last-week",),
        ("2026-W09",),
        ("all",),
        ("--from", "2026-02-03", "--to", "2026-03-01"),
    ],
)
def test_any_period_is_verified_as_it_was(
    export: Export, made: Catalog, clock: MovableClock, tmp_path: Path, period: tuple[str, ...]
) -> None:
    file = tmp_path / "a.json"
    line = period if len(period) > 1 else ("--period", *period)
    export("tracks", "--artist", str(made.artists[0]), *line, "-o", str(file))
    written = json.loads(file.read_bytes())["data"]
    assert (written["verification"]["compared_with"] is None) == (period == ("all",))
    clock.advance(400 * DAY)
    assert export("verify", str(file)).returncode == 0
    for name, value in (("name", "fortnight"), ("start", "tomorrow")):
        written["verification"]["window"] |= {"name": "custom", name: value}
        (tmp_path / "b.json").write_text(json.dumps({"data": written}))
        assert "has an invalid `window`" in export("verify", str(tmp_path / "b.json")).stderr


def test_a_report_says_that_growth_compares_with_a_whole_day(
    export: Export, made: Catalog, store: Store, tmp_path: Path
) -> None:
    store.write(lambda: made.add_plays([(made.tracks[0], NOW - 14 * DAY, "old")])).result()
    retention.prune(store, 5, now=NOW, on_progress=lambda _done, _all: None)
    files = {form: tmp_path / f"report.{form}" for form in ("pdf", "json", "xlsx", "csv")}
    for file in files.values():
        export("report", "--artist", str(made.artists[0]), "--period", "7-days", "-o", str(file))
        assert export("verify", str(file)).returncode == 0
    assert json.loads(files["json"].read_bytes())["data"]["growth_basis"] == "whole-day"
    first, *_ = (page.extract_text() for page in pypdf.PdfReader(files["pdf"]).pages)
    assert "% vs previous 7 days, counted whole" in " ".join(first.split())
    about = openpyxl.load_workbook(files["xlsx"])["about"]
    assert ("growth basis", "whole-day") in about.iter_rows(values_only=True)
    assert files["csv"].read_text().splitlines()[0] == '"date","plays","listeners","likes","reposts"'
    shown = export("show", "artist", str(made.artists[0]), "--period", "7-days", group="insights").stdout
    assert "% vs previous 7 days, counted whole)" in shown


def test_the_albums_that_a_report_compares_are_verified_over_its_days(
    export: Export, made: Catalog, store: Store, clock: MovableClock, tmp_path: Path
) -> None:
    released = clock.now() - 8 * DAY
    store.write(Album.update(release_date=isoformat(released)[:10]).execute).result()
    chosen = [option for album in made.albums for option in ("--release", str(album))]
    file = tmp_path / "report.csv"
    export("report", "--period", "7-days", *chosen, "--release-days", "4", "-o", str(file))
    assert export("verify", str(file)).returncode == 0
    store.write(lambda: made.add_plays([(made.tracks[0], released + 2 * DAY + 700 * SLOT, "new")])).result()
    found = [each for each in differences(export("verify", str(file), "--json")) if each[0].startswith("releases")]
    assert found == [
        ("releases 01 day 002", "plays", 0, 1),
        ("releases 01 day 002", "listeners", 4, 5),
        ("releases 01 day 003", "listeners", 4, 5),
    ]


def test_a_file_that_cannot_be_verified_says_why(export: Export, made: Catalog, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    export("tracks", "--artist", str(made.artists[0]), "-o", str(file))
    for content in ("[]", "{}", '{"type": "tracks"}'):
        (tmp_path / "a.csv.meta.json").write_text(content)
        assert "does not describe an export" in export("verify", str(file)).stderr
    (tmp_path / "c.json").write_text('{"data": {"rows": []}}')
    assert "c.json does not describe an export" in export("verify", str(tmp_path / "c.json")).stderr
