"""Checks of the database: each fault is found, with a hint."""

from pathlib import Path

import apsw
import pytest

from musicsvc.clock import DAY, MINUTE, Clock, isoformat, parse
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.doctor import Finding, database
from musicsvc.store.engine import sql
from tests.support.bounds import Bounds
from tests.support.damage import add_dangling_row

sqlite = pytest.mark.only_on("sqlite")
NOW = parse("2026-12-01T12:00:00Z")


@pytest.mark.only_on("postgres")
def test_a_clock_that_is_not_that_of_postgres_is_told(store_url: str) -> None:
    found = list(database.check_database(store_url, now=Clock().now() + DAY))
    (clock,) = [finding for finding in found if finding.check == "clock" and finding.level == "warning"]
    assert clock.finding.startswith("PostgreSQL's clock is 86,")


@pytest.mark.on_both
@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("value", ["on", "off"])
@pytest.mark.parametrize("names", [database.SAFEGUARDS, ("synchronous_commit",)])  # tests have no fsync
def test_durability_that_postgres_has_turned_off_is_a_problem(
    store_url: str, monkeypatch: pytest.MonkeyPatch, value: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setattr(database, "SAFEGUARDS", names)
    with opening.connect(store_url) as store:
        name = store.write(lambda: sql.fetch("SELECT current_database()")).result()[0][0]
        store.write(lambda: sql.run(f'ALTER DATABASE "{name}" SET synchronous_commit = {value}')).result()
    with opening.connect(store_url) as store:
        shown = store.read(lambda: {each: sql.fetch(f"SHOW {each}")[0][0] for each in names}).result()
    assert shown["synchronous_commit"] == value
    (found,) = (each for each in database.check_database(store_url, now=Clock().now()) if each.check == "pragmas")
    off = [each for each, setting in shown.items() if setting == "off"]
    runs_with = f"PostgreSQL runs with {', '.join(off)} off."
    durable = "PostgreSQL writes durably (fsync, full_page_writes, synchronous_commit)."
    assert (found.level, found.finding) == (("problem", runs_with) if off else ("ok", durable))


def by_check(found: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in found if finding.level != "ok"}


@sqlite
def test_damage_that_a_start_does_not_detect_is_found(file: Path, bounds: Bounds) -> None:
    bounds(quick_check_bytes=0)
    connection = apsw.Connection(str(file))
    connection.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")  # pages that hold nothing are not checked
    connection.close()
    whole = file.read_bytes()
    for page in range(3, len(whole) // 4096, 7):
        file.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        found = by_check(database.check_database(f"sqlite:///{file}", now=NOW))
        assert {finding.level for finding in found.values()} == {"problem"}, page
    file.write_bytes(whole)
    add_dangling_row(file)
    found = by_check(database.check_database(f"sqlite:///{file}", now=NOW))
    assert "refers to a missing row" in found["integrity"].finding


@sqlite
@pytest.mark.parametrize(("rows", "ending"), [(3, ""), (4, "; and 1 more"), (102, "; and 99 more")])
def test_three_defects_are_named_and_the_others_counted(file: Path, rows: int, ending: str) -> None:
    connection = apsw.Connection(str(file))
    connection.executemany("INSERT INTO track_tag (track_id, tag_id) VALUES (?, 1)", [(1 + at,) for at in range(rows)])
    connection.execute("INSERT INTO tag (id, name) VALUES (1, 'calm')")
    connection.close()
    found = by_check(database.check_database(f"sqlite:///{file}", now=NOW))["integrity"].finding
    named = [f"foreign keys: row {each} of track_tag refers to a missing row of track" for each in range(1, 4)]
    assert found == "; ".join(named[:rows]) + ending + "."


def test_a_clock_before_the_newest_row_is_a_problem(store_url: str) -> None:
    newest = Clock().now() + DAY
    with opening.connect(store_url) as store:
        store.write(lambda: users.create("ann@label.test", now=newest)).result()

    def problems(now: int) -> list[str]:
        found = database.check_database(store_url, now=now)
        return [each.finding for each in found if (each.check, each.level) == ("clock", "problem")]

    assert problems(newest - 5 * MINUTE) == []
    (found,) = problems(newest - 5 * MINUTE - 1)
    assert isoformat(newest) in found
