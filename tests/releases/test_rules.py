"""Migrations let the programs of the releases before go on working; the rule finds made ones that do not."""

from collections.abc import Callable
from pathlib import Path

import pytest

import musicsvc
from musicsvc.store.activity import log as activity_log
from musicsvc.store.schema import history, schema
from tests.releases import kept, rules
from tests.releases.kept import Release
from tests.support import upgrades

pytestmark = pytest.mark.only_on("sqlite")
Made = Callable[..., list[str]]
DROP = "ALTER TABLE playlist DROP COLUMN image"


@pytest.mark.parametrize("folder", [history.MIGRATIONS, activity_log.MIGRATIONS], ids=["database", "log"])
def test_every_migration_declares_the_oldest_program_that_may_run_on_its_schema(folder: Path) -> None:
    declared = {name: schema.load(name, folder).oldest_program for name in history.available(folder)}

    assert declared["0001_baseline"] == "0.1.0"
    for version in declared.values():
        assert version == ".".join(map(str, history.release(version)))
        assert history.release("0.1.0") <= history.release(version) <= history.release(musicsvc.__version__)


@pytest.mark.parametrize(
    ("folder", "part"), [(history.MIGRATIONS, "database"), (activity_log.MIGRATIONS, "log")], ids=["database", "log"]
)
def test_every_migration_lets_the_releases_before_go_on_working(folder: Path, part: str) -> None:
    assert rules.faults(folder, kept.releases(part)) == []


def _without(release: Release, version: str, table: str, column: str) -> Release:
    """Return a later release with the same migrations that uses a column no more."""
    uses = release.uses | {table: [name for name in release.uses[table] if name != column]}
    return release._replace(version=version, uses=uses)


@pytest.fixture
def releases() -> list[Release]:
    """0.1.0 as it was kept; made releases that stop reading and stop writing playlist.image."""
    (first, *_) = kept.releases()
    return [first, first._replace(version="0.2.0"), _without(first, "0.3.0", "playlist", "image")]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return a function that checks a made next migration, which is a statement, after these releases."""

    def check(statement: str, oldest_program: str, releases: list[Release]) -> list[str]:
        text = f"oldest_program = {oldest_program!r}\n\ndef up(migrator, db):\n    db.execute_sql({statement!r})\n"
        return rules.faults(upgrades.make_next(tmp_path / "next", {"9001_made": text}), releases)

    return check


def test_a_column_that_the_release_before_still_writes_cannot_be_dropped(releases: list[Release], made: Made) -> None:
    assert made(DROP, "0.2.0", releases[:2]) == ["9001_made: playlist.image is gone, but 0.2.0 uses it."]


def test_nor_by_declaring_that_the_release_before_may_not_go_on(releases: list[Release], made: Made) -> None:
    assert made(DROP, "0.3.0", releases[:2]) == ["9001_made: oldest_program is 0.3.0, but 0.2.0 must go on working."]


def test_a_column_that_the_release_before_neither_reads_nor_writes_can_be_dropped(
    releases: list[Release], made: Made
) -> None:
    assert made(DROP, "0.3.0", releases) == []


def test_a_drop_has_to_declare_that_older_programs_may_not_go_on(releases: list[Release], made: Made) -> None:
    assert made(DROP, "0.1.0", releases) == [
        "9001_made: playlist.image is gone, but 0.1.0 uses it.",
        "9001_made: playlist.image is gone, but 0.2.0 uses it.",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("ALTER TABLE album RENAME COLUMN upc TO barcode", "album.upc is gone, but 0.1.0 uses it."),
        ("ALTER TABLE album_tag RENAME TO tag_of_album", "album_tag.album_id is gone, but 0.1.0 uses it."),
        (
            "DROP TABLE device; CREATE TABLE device (id INTEGER PRIMARY KEY, kind TEXT NOT NULL)",
            "device.kind must have a value, but 0.1.0 writes none.",
        ),
        (
            "CREATE TABLE mood (track_id INTEGER REFERENCES track (id) ON DELETE CASCADE)",
            "deletes from track change mood, which 0.1.0 does not notice.",
        ),
    ],
    ids=["renamed column", "renamed table", "required column", "cascade"],
)
def test_what_breaks_the_release_before_is_found(
    releases: list[Release], made: Made, statement: str, fault: str
) -> None:
    assert f"9001_made: {fault}" in made(statement, "0.1.0", releases[:1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE album ADD COLUMN mood TEXT",
        "ALTER TABLE album ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'",
        "CREATE TABLE mood (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
        "CREATE INDEX album_name_again ON album (name)",
    ],
)
def test_what_is_only_added_is_no_fault(releases: list[Release], made: Made, statement: str) -> None:
    assert made(statement, "0.1.0", releases[:1]) == []
