"""Errors of settings name the setting and its source; unknown variables cause a warning."""

import json
import re
from pathlib import Path

import pytest

from musicsvc import config
from musicsvc.cli.session import Session
from musicsvc.errors import Failure
from tests.cli.conftest import Run

NONE = "no such setting. musicsvc config show lists all settings."


@pytest.mark.parametrize(
    ("written", "name", "message"),
    [
        ("x = 1", "x", NONE),
        ("[servers]\nport = 1", "servers", f"{NONE[:15]} (did you mean server?). musicsvc config show"),
        ("[server]\nprot = 1", "server.prot", f"{NONE[:15]} (did you mean server.port?). musicsvc config show"),
        ("public_url = 1", "public_url", f"{NONE[:15]} (did you mean server.public_url?). musicsvc"),
        (
            "[backups]\nfolder = ''",
            "backups.folder",
            "must name a file or folder, in UTF-8; leave the setting out for its default.",
        ),
        ("[backups]\nfolder = '~/music'", "backups.folder", "'~/music' begins with ~, which only a shell replaces"),
        ('[server]\ntls_key = "a\\u0000"', "server.tls_key", "must name a file or folder"),
        *(
            (f"[server]\nhost = '{host}'", "server.host", f"'{host}' is not an address such as 127.0.0.1")
            for host in ("", "127.0.0.1:80", "256.1.1.1", "[::1]", "http://127.0.0.1", "a b")
        ),
        ("[server]\npublic_url = 'https://x:99999'", "server.public_url", "'https://x:99999' is not the root"),
        ("[server]\npublic_url = 'https://[::1'", "server.public_url", "'https://[::1' is not the root"),
        ("[server]\ncors_origins = ['https://x:99999']", "server.cors_origins.0", "'https://x:99999' is not an origin"),
        ("[server]\nport = 'x'", "server.port", "must be a whole number, not 'x'"),
        ("[server]\npublic_url = 'ftp://x'", "server.public_url", "must start with http:// or https://"),
        (
            "[server]\nbase_path = '/music/'",
            "server.base_path",
            "'/music/' is not a valid base path, which begins with /",
        ),
        (
            "[server]\npublic_url = 'https://x.test/a'\nbase_path = '/b'",
            "server",
            "server.public_url has the path /a, and server.base_path is /b: set server.base_path to the path below",
        ),
        ("[server]\npublic_url = 'https://'", "server.public_url", "'https://' is not the root of a service"),
        ("[server]\npublic_url = 'https://x.test?a'", "server.public_url", "'https://x.test?a' is not the root"),
        ("[server]\nanswer_cache = '64,5MiB'", "server.answer_cache", "'64,5MiB' is not a number of bytes such as"),
        ("[server]\nshutdown_timeout = inf", "server.shutdown_timeout", "must be 1,000,000,000 or less, not inf"),
        ("[metrics]\nallow = ['x']", "metrics.allow.0", "'x' is not a valid address or network"),
    ],
)
def test_an_error_in_the_settings_file_names_the_file(
    bare: Run, tmp_path: Path, written: str, name: str, message: str
) -> None:
    file = tmp_path / "own.toml"
    file.write_text(written)
    line = bare("user", "list", "--config", str(file), expect=1).stderr
    assert line.startswith(f"Error: Setting {name} ({file}): {message}")


@pytest.mark.parametrize("host", ["::1", "fe80::1%lo", "localhost", "db-1.example.test", "3com.example"])
def test_addresses_and_names_of_hosts_are_accepted(host: str) -> None:
    assert config.load(options={"server.host": host}).server.host == host


def test_a_folder_may_have_any_name_without_control_characters(tmp_path: Path) -> None:
    folder = tmp_path / "音楽\u3000\xa0"  # blanks of two scripts
    assert config.load(options={"backups.folder": str(folder)}).backups.folder == folder
    with pytest.raises(Failure, match="must name a file or folder, in UTF-8"):  # a byte that is not
        config.load(options={"backups.folder": f"{folder}\udcff"})


def test_the_settings_file_is_utf_8_with_or_without_a_mark(bare: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes(b"\xef\xbb\xbf[server]\r\nport = 99\r\n")
    assert config.load(file).server.port == 99
    file.write_text("[access]\ncontact_email = 'j\xf6rg@label.test'", "latin-1")
    line = bare("config", "show", "--config", str(file), expect=1).stderr
    assert line == f"Error: The settings file {file} is not valid UTF-8. Save it in this encoding.\n"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("METRICS__ALLOW", "10.0.0.0/8", 'MUSICSVC_METRICS__ALLOW is not valid JSON. Write a list as ["a", "b"].'),
        ("METRICS", "10.0.0.0/8", 'MUSICSVC_METRICS is not valid JSON. Write a table as {"name": "value"}.'),
        ("METRICS__ALLOW", '["x"]', "Setting metrics.allow.0 (MUSICSVC_METRICS__ALLOW): 'x' is not a valid address"),
        ("METRICS", '{"allow": ["x"]}', "Setting metrics.allow.0 (MUSICSVC_METRICS): 'x' is not a valid address"),
        ("LIMITS__LOCL", "true", "Setting limits.locl (MUSICSVC_LIMITS__LOCL): no such setting (did you mean limits"),
        ("SERVER__PORT", "x", "Setting server.port (MUSICSVC_SERVER__PORT): must be a whole number, not 'x'."),
        ("LOG", "3", "Setting log (MUSICSVC_LOG): must be a table, not 3."),
    ],
)
def test_an_error_in_a_variable_names_the_variable(
    bare: Run, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"MUSICSVC_{variable}", value)
    assert bare("user", "list", expect=1).stderr.startswith(f"Error: {message}")


def test_a_variable_with_a_table_is_no_source_of_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[server]\nprot = 1")
    monkeypatch.setenv("MUSICSVC_SERVER", '{"init": true}')
    with pytest.raises(Failure, match=rf"^Setting server\.prot \({file}\): "):
        config.load(file)


def test_an_error_in_an_option_names_no_file() -> None:
    with pytest.raises(Failure, match=r"^Setting server\.workers: must be 64 or less, not 65\.$"):
        config.load(options={"server.workers": 65})


@pytest.mark.parametrize(
    "path", ["music", "/", "//music", "/music/", "/a//b", "/a b", "/a?b", "/é", "/%61", "/a/..", "/."]
)
def test_a_base_path_is_a_plain_path_without_a_slash_at_the_end(path: str) -> None:
    with pytest.raises(Failure, match=r"is not a valid base path"):
        config.load(options={"server.base_path": path})


@pytest.mark.parametrize("path", ["", "/music", "/a/b.c/~d_e-1", "/.hidden", "/..."])
def test_plain_base_paths_are_accepted(path: str) -> None:
    assert config.load(options={"server.base_path": path}).server.base_path == path


def test_a_server_without_a_log_does_not_start(bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare("init")
    monkeypatch.setenv("MUSICSVC_ACTIVITY__FILE", str(tmp_path))
    line = bare("serve", "--port", "0", expect=1).stderr
    assert line.startswith(f"Error: Setting activity.file: {tmp_path} is a folder. Name a file in it, such as")


def test_an_unknown_variable_causes_one_warning(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bare("init")
    monkeypatch.setenv("MUSICSVC_LIMIT__LOCAL", "true")
    monkeypatch.setenv("MUSICSVC_FOO", "1")
    monkeypatch.setenv("MUSICSVC_SERVER_PORT", "1")
    monkeypatch.setenv("MUSICSVC_PG_BIN", "/usr/bin")  # of the tests
    monkeypatch.setenv("MUSICSVC_BAR", "")
    warning = (
        "Warning: MUSICSVC_FOO, MUSICSVC_LIMIT__LOCAL (MUSICSVC_LIMITS__LOCAL?), MUSICSVC_SERVER_PORT"
        " (MUSICSVC_SERVER__PORT?): no such setting, ignored. musicsvc config show lists all.\n"
    )
    for line in (("db", "check", "--json"), ("user", "list", "--json")):
        done = bare(*line)
        assert done.stderr.startswith(warning)
        assert done.stderr.count("no such setting") == 1
        json.loads(done.stdout)
    assert bare("user", "list", "--quiet").stderr == ""


def test_every_setting_can_be_a_variable(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in json.loads(bare("config", "show", "--json").stdout):
        if row["value"] is not None:
            text = row["value"] if isinstance(row["value"], str) else json.dumps(row["value"])
            monkeypatch.setenv(f"MUSICSVC_{row['name'].replace('.', '__').upper()}", text)
    assert bare("config", "show").stderr == ""


# The lowest value of each number, and the highest where there is one.
LOWEST = {
    "server.port": 0,
    "server.workers": 1,
    "server.shutdown_delay": 0,
    "server.shutdown_timeout": 0,
    "server.answer_memory": 1 << 20,
    "server.answer_cache": 0,
    "server.max_connections": 1,
    "server.max_connections_per_address": 0,
    "plays.keep_days": 0,
    "abuse.refusals": 1,
    "abuse.refusal_seconds": 1,
    "abuse.probes": 1,
    "abuse.probe_seconds": 1,
    "abuse.probe_success_percent": 0,
    "abuse.terminate_after": 0,
    "activity.keep_days": 1,
    "backups.every_hours": 0,
    "backups.keep": 1,
}
TIMES = [f"server.{name}_timeout" for name in ("handshake", "head", "body", "write", "keepalive")]
HIGHEST = {
    "server.port": 65_535,
    "server.workers": 64,
    "abuse.probe_success_percent": 100,
    "plays.keep_days": 10**7,
    "activity.keep_days": 10**7,
    **dict.fromkeys(("abuse.probes", "backups.every_hours", "server.shutdown_timeout", *TIMES), 10**9),
}


def test_numbers_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))
    good = [*LOWEST.items(), *HIGHEST.items(), *((name, 0.001) for name in TIMES)]
    bad = [(name, value - 1) for name, value in LOWEST.items()] + [(name, value + 1) for name, value in HIGHEST.items()]
    for name, value in good:
        section, _, key = name.partition(".")
        assert getattr(getattr(config.load(options={name: value}), section), key) == value, name
    for name, value in [*bad, *((name, 0) for name in TIMES)]:
        with pytest.raises(Failure, match=rf"^Setting {re.escape(name)}: "):
            config.load(options={name: value})


def test_a_message_echoed_once_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session()
    for message in ("first", "second", "first"):
        session.echo_once(message)
    assert capsys.readouterr().err == "first\nsecond\n"
