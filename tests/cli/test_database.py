"""`musicsvc init`, `db` and `config`."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.cli.conftest import Run
from tests.support.command import run_in_process


@pytest.mark.only_on("sqlite")
def test_init_creates_the_database_and_is_safe_to_repeat(bare: Run, tmp_path: Path) -> None:
    assert "Run: musicsvc init" in bare("user", "list", expect=1).stderr
    first = json.loads(bare("init", "--json").stdout)
    assert (first["created"], first["migrations"][0]) == (True, "0001_baseline")
    bare("user", "create", "ada@example.test")
    again = bare("init", "--json")
    assert json.loads(again.stdout) == {**first, "created": False, "migrations": []}
    assert "exists already" in again.stderr
    assert len(json.loads(bare("user", "list", "--json").stdout)) == 1
    folder = tmp_path / "folder"
    assert (folder.stat().st_mode & 0o777, (folder / "musicsvc.db").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("content", [b"", b"no database at all, but long enough to be looked at"])
def test_a_file_that_is_not_a_database_is_refused_and_not_changed(bare: Run, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "folder" / "musicsvc.db"
    file.parent.mkdir()
    file.write_bytes(content)
    for line in (("init",), ("db", "check")):
        assert str(file) in bare(*line, expect=1).stderr
    assert file.read_bytes() == content


def test_an_empty_database_is_upgraded(
    bare: Run, new_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", new_database(migrated=False))
    assert "musicsvc init" in bare("user", "list", expect=1).stderr
    assert json.loads(bare("db", "upgrade", "--json").stdout)["migrations"][0] == "0001_baseline"
    again = bare("db", "upgrade")
    assert (again.stdout, again.stderr) == ("", "The schema is up to date.\n")
    assert json.loads(bare("init", "--json").stdout)["migrations"] == []


@pytest.mark.only_on("sqlite")
def test_an_activity_log_of_before_the_first_version_is_kept_under_another_name(
    bare: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare("init")
    log = tmp_path / "folder" / "activity.db"
    connection = apsw.Connection(str(log))
    connection.execute("UPDATE activity_migration SET name = '0001_activity'")
    connection.close()
    before = log.read_bytes()
    assert "another version of musicsvc. Run: musicsvc db upgrade" in bare("activity", expect=1).stderr
    bare("db", "upgrade")
    assert log.with_name("activity.db.aside-1").read_bytes() == before
    assert f"{log} was created by another version of musicsvc; renamed it to {log}.aside-1" in caplog.text
    bare("activity")


def test_an_unsupported_database_url_is_one_line(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "mysql://root@localhost/x")
    assert "must start with sqlite:/// or postgresql://" in bare("user", "list", expect=1).stderr


def test_an_unreachable_server_is_one_line_without_the_password(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1:1/music")
    for line in (("user", "list"), ("init",), ("db", "check")):
        assert "s3cret" not in bare(*line, expect=1).stderr


@pytest.mark.parametrize("address", ["sqlite:///", "sqlite:////", "sqlite:///:memory:", "sqlite://", "sqlite:music.db"])
def test_a_sqlite_url_without_a_file_is_refused(bare: Run, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", address)
    fault = f"Setting database_url (MUSICSVC_DATABASE_URL): {address!r} does not name a file; write sqlite:////path/to/file.db."
    for line in (("init",), ("db", "backup")):
        assert bare(*line, expect=1).stderr == f"Error: {fault}\n"
    doctor = run_in_process(["doctor", "--json"])
    assert doctor.returncode == 1
    assert [(each["check"], each["finding"]) for each in json.loads(doctor.stdout)["findings"]] == [("settings", fault)]


def test_config_show_names_origins_and_masks_passwords(
    bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "config.toml").write_text("[server]\nport = 9000\nworkers = 3\n")
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1/music?sslpassword=s3cret")
    monkeypatch.setenv("MUSICSVC_SERVER__WORKERS", "2")
    done = bare("config", "show", "--json")
    found = {row["name"]: (row["value"], row["from"]) for row in json.loads(done.stdout)}
    assert found["server.host"] == ("127.0.0.1", "default")
    assert found["server.port"] == (9000, str(folder / "config.toml"))
    assert found["server.workers"] == (2, "MUSICSVC_SERVER__WORKERS")
    assert found["database_url"][0] == "postgresql://ada:***@127.0.0.1/music?sslpassword=***"
    assert "s3cret" not in done.stdout + bare("config", "show").stdout


def test_config_show_prints_values_as_variables_take_them(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_METRICS__ALLOW", '["10.0.0.0/8","fd00::/8"]')
    monkeypatch.setenv("MUSICSVC_SERVER__LOCAL_HTTP", "yes")
    before = {row["name"]: row["value"] for row in json.loads(bare("config", "show", "--json").stdout)}
    lines = [re.split(r" {2,}", line.rstrip()) for line in bare("config", "show").stdout.splitlines()[1:]]
    shown = {line[0]: line[1] if len(line) > 2 else "" for line in lines}
    assert (shown["metrics.allow"], shown["server.local_http"]) == ('["10.0.0.0/8", "fd00::/8"]', "true")
    assert (shown["server.trusted_proxies"], shown["registration.grants_access"]) == (
        '["127.0.0.0/8", "::1/128"]',
        "false",
    )
    assert shown["server.public_url"] == ""
    for name, value in shown.items():
        monkeypatch.setenv(f"MUSICSVC_{name.replace('.', '__').upper()}", value)
    again = json.loads(bare("config", "show", "--json").stdout)
    assert {row["name"]: row["value"] for row in again} == before
    assert [row["name"] for row in again if row["from"] == "default"] == [
        name
        for name, value in before.items()
        if value is None or value == ""  # an empty variable is not set
    ]
