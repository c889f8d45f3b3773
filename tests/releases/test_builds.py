"""Real builds of three made versions: the first goes on working until the schema lets it no longer."""

import http.client
from pathlib import Path

import pytest

from musicsvc.store.engine.url import describe
from tests.releases.builds import Builder, Version

pytestmark = pytest.mark.long
FIRST, SECOND, THIRD = "9.1.0", "9.2.0", "9.3.0"
MOODS = """
oldest_program = "9.1.0"

def up(migrator, db):
    db.execute_sql("ALTER TABLE track ADD COLUMN mood TEXT")
"""
DROP = """
oldest_program = "9.2.0"

def up(migrator, db):
    db.execute_sql("ALTER TABLE track DROP COLUMN mood")
"""
MIGRATIONS = {"9002_moods": MOODS, "9003_drop": DROP}


@pytest.fixture
def build(tmp_path: Path, store_url: str) -> Builder:
    return Builder(tmp_path, store_url)


def _get(root: str, path: str, token: str | None = None) -> int:
    """Return the status of a response."""
    connection = http.client.HTTPConnection(root.removeprefix("http://"), timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
    status = connection.getresponse().status
    connection.close()
    return status


def _token(version: Version, name: str) -> tuple[int, str]:
    made = version("token", "create", "ann@label.test", "--name", name, "--json")
    return made["id"], made["token"]


def _people(version: Version) -> None:
    version("user", "create", "ann@label.test", "--json")
    version("access", "grant", "ann@label.test", "--json")


@pytest.mark.only_on("postgres")
def test_nodes_of_two_versions_serve_one_database_and_the_third_ends_the_first(
    build: Builder, store_url: str, tmp_path: Path
) -> None:
    first, second, third = build(FIRST), build(SECOND, {"9002_moods": MOODS}), build(THIRD, MIGRATIONS)
    _people(first)
    with first.serve(tmp_path / "node1") as old:
        assert _get(old.root, "/readyz") == 200

        assert second("db", "upgrade", "--json")["migrations"] == ["9002_moods"]

        with second.serve(tmp_path / "node2") as new:
            number, token = _token(first, "laptop")
            for root in (old.root, new.root):
                assert [_get(root, "/readyz"), _get(root, "/api/v1/albums", token)] == [200, 200]
            first("token", "revoke", str(number), "--json")
            assert [_get(root, "/api/v1/users/me", token) for root in (old.root, new.root)] == [401, 401]

            assert third("db", "upgrade", "--json")["migrations"] == ["9003_drop"]

            assert [_get(root, "/readyz") for root in (old.root, new.root)] == [503, 200]
        assert "needs musicsvc 9.2.0 or newer, and this is 9.1.0" in old.err
    refused = first("token", "list", "--json", expect=1)
    assert refused == (
        f"Error: {describe(store_url)} needs musicsvc 9.2.0 or newer, and this is 9.1.0:"
        " install that version, or restore a backup of before the upgrade.\n"
    )


@pytest.mark.only_on("sqlite")
def test_the_first_version_is_upgraded_to_the_third_in_one_step_and_its_backup_leads_back(
    build: Builder, tmp_path: Path
) -> None:
    first, third = build(FIRST), build(THIRD, MIGRATIONS)
    _people(first)
    assert "Run: musicsvc db upgrade" in third("user", "list", "--json", expect=1)
    assert third("db", "upgrade", "--dry-run", "--json")["oldest_program"] == SECOND

    upgraded = third("db", "upgrade", "--json")

    assert upgraded["migrations"] == [*MIGRATIONS]
    third("user", "create", "ben@label.test", "--json")
    for command in (("user", "list"), ("db", "upgrade"), ("db", "check"), ("serve", "--port", "0")):
        assert "needs musicsvc 9.2.0 or newer, and this is 9.1.0" in first(*command, expect=1)
    first("db", "restore", upgraded["backup"], "--yes", "--json")
    assert [user["email"] for user in first("user", "list", "--json")] == ["ann@label.test"]
    with first.serve(tmp_path / "back") as server:
        assert _get(server.root, "/readyz") == 200
