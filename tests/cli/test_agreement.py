"""Every named period has the same figures in every file and command, those of a count of single plays."""

import json
import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from musicsvc.clock import DAY, SECOND, MovableClock, parse
from musicsvc.store.engine.store import Store
from musicsvc.store.plays.subjects import KINDS, Subject
from tests.support import export_files
from tests.support import listening_oracle as oracle
from tests.support.command import run_at
from tests.support.listening_world import TimedWorld
from tests.support.oracle import Named, Past, PlayOf, at
from tests.support.pdf_text import in_print, printed

NOW = parse("2026-02-17T10:20:30.5Z")
FIRST, RELEASED = date(2024, 11, 20), date(2026, 2, 1)
PERIODS = [
    Named("today", "2026-02-17", "2026-02-17"),
    Named("yesterday", "2026-02-16", "2026-02-16"),
    Named("7-days", "2026-02-11", "2026-02-17"),
    Named("1-year", "2025-02-18", "2026-02-17"),
    Named("this-month", "2026-02-01", "2026-02-17", 1),
    Named("last-month", "2026-01-01", "2026-01-31", 1),
    Named("last-week", "2026-02-09", "2026-02-15"),
    Named("2025-W52", "2025-12-22", "2025-12-28"),
    Named("last-quarter", "2025-10-01", "2025-12-31", 3),
    Named("last-year", "2025-01-01", "2025-12-31", 12),
    Named("2025-12", "2025-12-01", "2025-12-31", 1),
    Named("2025-Q4", "2025-10-01", "2025-12-31", 3),
    Named("2026-Q1", "2026-01-01", "2026-02-17", 3),
    Named("2025", "2025-01-01", "2025-12-31", 12),
    Named("2026", "2026-01-01", "2026-02-17", 12),
    Named("all", str(FIRST), "2026-02-17", -1),
    Named("custom", "2025-11-30", "2026-02-01"),
]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> TimedWorld:
    """Fifteen months of plays; some were reported late, and an import of others was undone."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)
    world, chance = TimedWorld.create(store, NOW), random.Random(17)
    tracks = world.made.tracks
    world.release(world.made.albums[0], at(RELEASED) // DAY)

    def plays(count: int) -> list[PlayOf]:
        backs = [int(chance.triangular(0, 454, 0)) * DAY + chance.randrange(-DAY // 2, DAY // 2) for _ in range(count)]
        listeners = [f"l{int(chance.triangular(0, 90, 90 - back / DAY / 9))}" for back in backs]
        return [
            PlayOf(tracks[chance.choice((0, 0, 0, 1, 2, 2, 3))], NOW - max(back, 0), listener, duration)
            for back, listener, duration in zip(
                backs, listeners, chance.choices((None, 0, 9_000, 25_000, 59_000, 150_000, 10**6), k=count), strict=True
            )
        ]

    world.play([PlayOf(tracks[3], at(FIRST) + 1, "the first", None), *plays(900)])
    world.play(plays(300), 1)
    world.roll_up()
    world.play(plays(500))
    world.undo(1)
    days = [at(date(2026, 2, 17)) - chance.randrange(-10 * 3600, 400 * 86_400) * SECOND for _ in range(90)]
    store.write(
        lambda: world.made.give([(tracks[n % 4], day) for n, day in enumerate(days)], [(tracks[2], days[0])])
    ).result()
    world.made.past.plays = list(world.plays.values())
    world.made.past.by_artist[0] = tracks  # everything
    return world


@pytest.mark.slow
@pytest.mark.only_on("sqlite")  # the same over either database
def test_every_period_has_the_same_figures_in_every_file_and_command(
    world: TimedWorld, tmp_path: Path, *, long: bool
) -> None:
    clock, past = MovableClock(NOW, speed=0), world.made.past
    album, *_ = world.made.albums
    subjects = [("track", world.made.tracks[0]), ("album", album), ("artist", world.made.artists[1])]
    for number, period in enumerate(PERIODS):
        chosen = ["--period", period.name] if period.name != "custom" else ["--from", period.first, "--to", period.last]
        for index, type_ in enumerate(export_files.TYPES):
            file = tmp_path / f"{type_}.{export_files.TABLES[(index + number) % 4]}"  # another format in each period
            run_at(clock, "export", type_, *chosen, "-o", str(file))
            expected = export_files.expected(past, type_, period, NOW)
            if file.suffix == ".xlsx" and type_ != "plays":
                expected = [export_files.for_people(row, period, NOW) for row in expected]
            assert [{name: row[name] for name in expected[0]} for row in export_files.rows(file)] == expected
        report = json.loads(run_report(clock, tmp_path / "report.json", chosen))["data"]
        check_report(past, period, report)
        if long or number % 3 == 0:  # reading a page of PDF takes as long as all else of a period
            check_pdf(past, period, run_report(clock, tmp_path / "report.pdf", chosen))
        check_details(world, period, report)
        check_subject(world, clock, subjects[number % 3], period, chosen)


def run_report(clock: MovableClock, file: Path, chosen: list[str]) -> bytes:
    run_at(clock, "export", "report", *chosen, "-o", str(file))
    return file.read_bytes()


def check_report(past: Past, period: Named, data: dict[str, Any]) -> None:
    everything = past.figures("artist", 0, period, NOW)
    assert data["period"] == everything.pop("period")
    assert {name: data["summary"][name] for name in everything} == everything
    chart = past.chart("artist", 0, period, NOW)
    assert {name: data["charts"][name] for name in ("points", "totals")} == {
        name: chart[name] for name in ("points", "totals")
    }
    assert data["top_tracks"] == [row for row in past.artist(0, period, NOW, 0)["top_tracks"] if row["plays"]["period"]]


def check_pdf(past: Past, period: Named, pdf: bytes) -> None:
    everything, text = past.figures("artist", 0, period, NOW), printed(pdf, pages=1)
    assert f"Plays of all time {everything['plays']['total']:,} " in text
    growth, first = everything["growth"], past.first_plays("artist", 0, period, NOW)
    after = "" if period.name == "all" or first else " vs"
    for label, count, change in (
        ("Plays", everything["plays"]["period"], growth["plays_change"]),
        ("Listeners", everything["listeners"]["unique"], growth["listeners_change"]),
    ):
        assert f"{label} {count:,} {'' if period.name == 'all' else in_print(change, first)}{after}" in text


def check_details(world: TimedWorld, period: Named, report: dict[str, Any]) -> None:
    """Compare listening, hours, milestones and releases in the report with a count of all plays."""
    plays, days = list(world.plays.values()), (date.fromisoformat(period.first), date.fromisoformat(period.last))
    assert report["listening"] == oracle.listening(plays, world.lengths, *days)
    assert report["hours"]["hours"] == oracle.hours(plays, *days)
    subjects = world.subjects()
    of_noun = {(each["kind"], each["id"]): each for each in report["milestones"]}
    for (noun, each), found in of_noun.items():
        expected = oracle.milestones(subjects[Subject(KINDS[noun], each)])
        assert {name: found[name] for name in expected} == expected
    tops = {("track", row["id"]) for row in report["top_tracks"]}
    assert {key for key in of_noun if key[0] == "track"} == tops
    album = world.made.albums[0]
    points = oracle.release(subjects[Subject(KINDS["album"], album)], RELEASED, 28, date(2026, 2, 17))
    released = days[1] >= RELEASED
    assert [(each["id"], each["points"]) for each in report["releases"]["releases"]] == [(album, points)] * released


def check_subject(
    world: TimedWorld, clock: MovableClock, of: tuple[str, int], period: Named, chosen: list[str]
) -> None:
    """Compare what `insights show` and `insights explain` print with the oracles."""
    noun, each = of
    plays = world.subjects()[Subject(KINDS[noun], each)]
    days = date.fromisoformat(period.first), date.fromisoformat(period.last)
    line = (noun, str(each), *chosen, "--json")
    shown = json.loads(run_at(clock, "insights", "show", *line))
    figures = world.made.past.figures(noun, each, period, NOW)
    expected: dict[str, Any] = {
        "listening": {"period": figures["period"]} | oracle.listening(plays, world.lengths, *days),
        "hours": {"period": figures["period"], "timezone": "UTC", "hours": oracle.hours(plays, *days)},
        "milestones": oracle.milestones(plays),
    }
    assert {name: shown[name] for name in figures | expected} == figures | expected

    explained = json.loads(run_at(clock, "insights", "explain", *line))
    assert (explained["served"], explained["differences"], explained["equal"]) == (figures, [], True)
    counted = explained["counted"]
    assert [*counted["period"].values()] == [figures["plays"]["period"], figures["listeners"]["unique"]]
    points = world.made.past.chart(noun, each, period, NOW)["points"]
    of_days = [{name: point[name] for name in ("date", "plays", "listeners")} for point in points if point["plays"]]
    assert explained["days"] == of_days
    for source in ("served", "counted"):
        found = explained["listening"][source]
        assert {name: found[name] for name in expected} == expected
        if noun == "album":
            (release,) = found["release"]["releases"]
            assert release["points"] == oracle.release(plays, RELEASED, 28, date(2026, 2, 17))
