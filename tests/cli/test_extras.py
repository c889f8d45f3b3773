"""Commands that need an optional dependency name the command that installs it."""

import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from musicsvc import extras
from musicsvc.errors import Failure

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

ROOT = Path(__file__).resolve().parents[2]
WHEEL = {"url": "https://host.test/musicsvc.whl", "archive_info": {}}
# Runs in a new process, which has not imported the drivers; prints exit code, stdout and stderr of each.
WITHOUT = """
import json, sys
for name in ("psycopg", "duckdb", "pyspark", "py4j", "clickhouse_connect"):
    sys.modules[name] = None  # as if it were not installed
from tests.support.command import run_in_process
done = [run_in_process(line) for line in json.loads(sys.argv[1])]
print(json.dumps([(each.returncode, each.stdout, each.stderr) for each in done]))
"""


def _run_without_extras(*lines: tuple[str, ...]) -> list[tuple[int, str, str]]:
    command = [sys.executable, "-c", WITHOUT, json.dumps(lines)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return [tuple(each) for each in json.loads(done.stdout)]


@pytest.mark.slow
def test_postgres_without_its_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://127.0.0.1:1/music")
    lines = [("init",), ("db", "upgrade"), ("db", "check"), ("user", "list")]
    sentence = f"PostgreSQL needs the extra postgres. Run: {extras.command('postgres')}"
    *others, (code, out, _) = _run_without_extras(*lines, ("doctor", "--json"))
    assert others == [(1, "", f"Error: {sentence}\n")] * len(lines)
    assert code == 1
    assert [
        f"{each['finding']} {each['way_out']}" for each in json.loads(out)["findings"] if each["check"] == "database"
    ] == [sentence]


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
def test_parquet_without_its_extra_names_the_extra(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    (tmp_path / "songs.parquet").write_bytes(b"PAR1")
    out = tmp_path / "out.parquet"
    lines = [
        ("import", "catalog", str(tmp_path / "songs.parquet")),
        ("export", "tracks", "-o", str(out)),
        ("plays", "dump", "-o", str(tmp_path / "dump")),
    ]
    sentence = f"Parquet needs the extra parquet. Run: {extras.command('parquet')}"
    assert _run_without_extras(*lines) == [(1, "", f"Error: {sentence}\n")] * 3
    assert not (tmp_path / "dump").exists()
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix) == ["songs.parquet"]


@pytest.mark.slow
def test_engines_without_their_extras_name_the_extras(tmp_path: Path) -> None:
    tables = ("tracks", "albums", "artists", "track_artists", "album_artists")
    (tmp_path / "tables").mkdir()
    files = [
        {"path": f"tables/{table}.parquet", "rows": 0, "sha256": hashlib.sha256(b"").hexdigest()} for table in tables
    ]
    for each in files:
        (tmp_path / str(each["path"])).touch()
    manifest = {"schema_version": 1, "files": files, "dumped_at": "2026-01-01T00:00:00Z", "complete_from": None}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    engines = {
        "duckdb": ("Parquet", "parquet"),
        "spark": ("Spark", "spark"),
        "clickhouse": ("ClickHouse", "clickhouse"),
    }
    line = "plays", "recount", "--from", str(tmp_path), "--kind", "artist", "--engine"
    found = _run_without_extras(*((*line, engine) for engine in engines))
    assert found == [
        (1, "", f"Error: {title} needs the extra {extra}. Run: {extras.command(extra)}\n")
        for title, extra in engines.values()
    ]


@pytest.mark.parametrize(
    ("origin", "install"),
    [
        (None, "{pip} 'musicsvc[postgres]'"),
        (WHEEL, "{pip} 'musicsvc[postgres] @ https://host.test/musicsvc.whl'"),
        ({"url": "file:///srv/musicsvc", "dir_info": {}}, "cd /srv/musicsvc && {pip} '.[postgres]'"),
        (
            {"url": "file:///srv/my%20music", "dir_info": {"editable": True}},
            "cd '/srv/my music' && {pip} -e '.[postgres]'",
        ),
    ],
)
def test_the_command_fits_where_the_package_was_installed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, install: str
) -> None:
    _install(tmp_path, monkeypatch, origin)
    assert extras.command("postgres") == install.format(pip=f"{shlex.quote(sys.executable)} -m pip install")


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    info = folder / "musicsvc-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: musicsvc\nVersion: 0\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(folder))


@pytest.mark.parametrize(
    ("left", "install"), [("pipx_metadata.json", "pipx install --force"), ("uv-receipt.toml", "uv tool install")]
)
def test_the_command_fits_the_tool_that_installed_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, install: str
) -> None:
    """tests/packaging/test_wheel.py runs these commands."""
    _install(tmp_path, monkeypatch, WHEEL)
    (tmp_path / left).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert extras.command("parquet") == f"{install} 'musicsvc[parquet] @ https://host.test/musicsvc.whl'"


def test_a_frozen_program_without_an_extra_names_the_package_that_can_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, monkeypatch, None)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(Failure) as failed, extras.required("parquet"):
        raise ImportError
    assert str(failed.value) == (
        "Parquet needs the extra parquet, which this program was built without. Run: pipx install 'musicsvc[parquet]'"
    )


def test_a_package_that_is_not_installed_is_installed_from_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "PACKAGE", "musicsvc-not-installed")
    assert extras.command("parquet").endswith(" -m pip install 'musicsvc-not-installed[parquet]'")
