"""`musicsvc doctor`: every fault is found and shown with a hint, and no false problems are."""

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsvc import config
from musicsvc.clock import DAY, SECOND, Clock, isoformat, parse
from musicsvc.config import Server
from musicsvc.errors import Failure
from musicsvc.server import doctor as exposure
from musicsvc.server.network import tls
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.activity import log as activity_log
from musicsvc.store.backups import create
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.doctor import database, files
from musicsvc.store.doctor.finding import Finding, problem
from musicsvc.store.engine.sqlite import files as sqlite_files
from musicsvc.store.engine.sqlite import reserved_space
from tests.cli.conftest import Run
from tests.support import old_databases
from tests.support.program import Program, until

sqlite = pytest.mark.only_on("sqlite")
NOW = parse("2026-12-01T12:00:00Z")
Doctor = Callable[[], tuple[int, dict[str, list[dict[str, str]]]]]


@pytest.fixture
def doctor(run: Run) -> Doctor:  # noqa: ARG001 - it names the database
    """Return a function that runs the command and returns its exit code and its findings by check."""

    def ask() -> tuple[int, dict[str, list[dict[str, str]]]]:
        line = [sys.executable, "-m", "musicsvc", "doctor", "--json"]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
        assert "Traceback" not in done.stderr
        answer: Any = json.loads(done.stdout)
        found: dict[str, list[dict[str, str]]] = {}
        for finding in answer["findings"]:
            assert (finding["level"] == "ok") == (finding["way_out"] == ""), finding
            assert "\n" not in finding["finding"]
            found.setdefault(finding["check"], []).append(finding)
        assert answer["ok"] == (done.returncode == 0)
        return done.returncode, found

    return ask


@pytest.fixture
def file(store_url: str) -> Path:
    return Path(store_url.removeprefix("sqlite:///"))


def levels(found: dict[str, list[dict[str, str]]], but: Collection[str] = ()) -> set[str]:
    return {finding["level"] for check, findings in found.items() if check not in but for finding in findings}


@sqlite
def test_an_installation_without_faults_has_no_problems_also_while_a_server_runs(
    doctor: Doctor, file: Path, tmp_path: Path
) -> None:
    folder = file.parent / "backups"
    folder.mkdir(mode=0o700)
    create.create(file, backup_folder.new_name(folder, Clock().now()))
    with Program(tmp_path, "serve", "--port", "0") as program:
        assert program.root
        until(lambda: files.check_reserved_space(file)[0].level == "ok")
        code, found = doctor()
    assert (code, levels(found, but={"disk", "descriptors"})) == (0, {"ok"})
    assert list(found) == [
        *(
            "clock",
            "SQLite",
            "pragmas",
            "integrity",
            "schema",
            "counts",
            "activity log",
            "permissions",
            "disk",
            "ballast",
        ),
        *("backups", "leftovers", "TLS", "settings", "descriptors"),
    ]


@pytest.mark.only_on("postgres")
def test_postgres_is_checked_by_its_readable_settings(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = doctor()
    assert set(found) >= {"clock", "pragmas", "schema", "TLS", "settings", "descriptors"}
    assert levels({name: found[name] for name in ("clock", "schema", "settings")}) == {"ok"}
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1:1/music")
    code, found = doctor()
    assert (code, found["database"][0]["level"]) == (1, "problem")
    assert "s3cret" not in str(found)


@pytest.mark.only_on("postgres")
def test_a_clock_that_is_not_that_of_postgres_is_told(store_url: str) -> None:
    found = list(database.check_database(store_url, now=Clock().now() + DAY))
    (clock,) = [finding for finding in found if finding.check == "clock" and finding.level == "warning"]
    assert clock.finding.startswith("PostgreSQL's clock is 86,")


def _middle(file: Path) -> None:
    content = file.read_bytes()
    at = len(content) // 2 // 4096 * 4096
    file.write_bytes(content[:at] + b"\xa5" * 4096 + content[at + 4096 :])


@sqlite
@pytest.mark.parametrize(
    ("spoil", "message", "hint"),
    [
        (lambda file: file.unlink(), "There is no database at ", "musicsvc init"),
        (lambda file: file.write_bytes(b""), "is empty (0 bytes).", "musicsvc db restore FILE"),
        (_middle, "is damaged.", "musicsvc db restore FILE"),
    ],
    ids=["missing", "empty", "damaged"],
)
def test_an_unusable_database_is_reported_with_a_hint(
    file: Path, spoil: Callable[[Path], object], message: str, hint: str
) -> None:
    spoil(file)
    found = by_check(database.check_database(f"sqlite:///{file}", now=NOW))
    assert found["database"].level == "problem"
    assert message in found["database"].finding
    assert hint in found["database"].hint


@sqlite
def test_the_other_checks_run_when_the_database_is_damaged(doctor: Doctor, file: Path) -> None:
    _middle(file)
    (file.parent / "backups").write_text("in the way")
    code, found = doctor()
    assert (code, found["database"][0]["level"], found["backups"][0]["level"]) == (1, "problem", "problem")
    assert len(found) > 8


@sqlite
def test_findings_are_printed_as_a_table(run: Run, file: Path) -> None:
    file.chmod(0o640)
    said = run("doctor")
    assert said.stderr == "Found 0 problems and 3 warnings.\n"
    assert f"chmod 600 {file}" in said.stdout
    assert "Run: musicsvc db backup (a server creates one every 24 hours)" in said.stdout


def by_check(found: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in found if finding.level != "ok"}


@sqlite
def test_another_schema_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "data" / "musicsvc.db"
    old_databases.make(path, 1)
    found = by_check(database.check_database(f"sqlite:///{path}", now=NOW))
    assert found["schema"] == problem(
        "schema", "The database is of an older schema (0001_catalog).", "Run: musicsvc db upgrade"
    )


@sqlite
def test_damage_that_a_start_does_not_detect_is_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_files, "QUICK_CHECK_BYTES", 0)
    whole = file.read_bytes()
    for page in range(3, len(whole) // 4096, 7):
        file.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        found = by_check(database.check_database(f"sqlite:///{file}", now=NOW))
        assert {finding.level for finding in found.values()} == {"problem"}, page
    file.write_bytes(whole)
    _dangling(file)
    found = by_check(database.check_database(f"sqlite:///{file}", now=NOW))
    assert "refers to a missing row" in found["integrity"].finding


def test_a_clock_before_the_newest_row_is_a_problem(store_url: str) -> None:
    now = Clock().now()
    assert "clock" not in by_check(database.check_database(store_url, now=now))
    with opening.connect(store_url) as store:
        store.write(lambda: users.create("ann@label.test", now=now + DAY)).result()
    found = by_check(database.check_database(store_url, now=now))
    assert found["clock"].level == "problem"
    assert isoformat(now + DAY) in found["clock"].finding


def test_a_clock_decades_off_is_a_problem() -> None:
    assert [database.check_clock(parse(f"{year}-01-01")).level for year in (1970, 2027, 2106)] == [
        *("problem", "ok", "problem")
    ]


@sqlite
def test_a_sqlite_version_with_a_corruption_bug_is_a_warning(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    assert by_check(database.check_database(store_url, now=NOW))["SQLite"].level == "warning"


@sqlite
def test_files_that_others_may_open_are_reported(file: Path) -> None:
    folder = file.parent
    assert [finding.level for finding in files.check_permissions([file], [folder])] == ["ok"]
    for mode, level in ((0o604, "problem"), (0o640, "warning")):
        file.chmod(mode)
        (finding,) = files.check_permissions([file], [folder])
        assert (finding.level, finding.hint) == (level, f"Run: chmod 600 {file}")
    file.chmod(0o600)
    folder.chmod(0o755)
    (finding,) = files.check_permissions([file], [folder])
    assert (finding.level, finding.hint) == ("warning", f"Run: chmod 700 {folder}")


@sqlite
def test_low_disk_space_is_reported(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)

    def levels_at(free: int) -> list[str]:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free))
        return [finding.level for finding in files.check_disks(file, tmp_path / "none", (tmp_path,))]

    size = file.stat().st_size
    assert levels_at(files.MIN_FREE - 1) == ["problem"]
    assert levels_at(files.MIN_FREE) == levels_at(files.MIN_FREE + size - 1) == ["warning"]
    assert levels_at(files.MIN_FREE + 2 * size) == ["ok"]


@sqlite
def test_released_reserved_space_is_reported(file: Path) -> None:
    place = file.with_name(reserved_space.NAME)
    for size, level in ((0, "warning"), (reserved_space.SIZE // 2, "warning"), (reserved_space.SIZE, "ok")):
        place.write_bytes(bytes(size))
        assert [finding.level for finding in files.check_reserved_space(file)] == [level]


def _dangling(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO track_genre (track_id, genre_id) VALUES (7, 9)")
    connection.close()


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (lambda file: file.write_bytes(b""), "is empty"),
    (lambda file: file.write_bytes(file.read_bytes()[:-1]), "is cut short"),
    (lambda file: file.write_bytes(b"a note " * 1000), "is not a SQLite database"),
    (_middle, "is damaged"),
    (_dangling, "is damaged: a row refers to a missing row"),
]


@sqlite
def test_the_age_of_the_last_good_backup_is_checked(file: Path) -> None:
    folder = file.parent / "backups"

    def look(now: int, every: int = 24) -> list[str]:
        found = list(files.check_backups(file, folder, every, now=now))
        assert {finding.check for finding in found} == {"backups"}
        return [finding.level for finding in found]

    now = Clock().now()
    assert look(now) == ["warning"]
    folder.mkdir()
    made = create.create(file, backup_folder.new_name(folder, now)).file
    assert (look(now), look(now, every=0)) == (["ok"], ["warning", "ok"])
    assert look(now + 30 * DAY) == ["ok"]  # for nothing has changed since
    connection = apsw.Connection(str(file))
    connection.execute("INSERT INTO tag (name) VALUES ('later')")
    connection.close()
    made.rename(backup_folder.new_name(folder, now - DAY // 2))
    assert [look(now + days * DAY // 4) for days in (1, 3, 7)] == [["ok"], ["warning"], ["problem"]]
    (kept,) = folder.iterdir()
    newer = backup_folder.new_name(folder, now)
    for spoil, message in SPOILT:
        shutil.copy(kept, newer)
        spoil(newer)
        damaged, last = files.check_backups(file, folder, 24, now=now)
        assert (damaged.level, last.level) == ("warning", "ok")
        assert f"{newer} {message}" in damaged.finding
        assert str(kept) in last.finding
    assert look(now - 2 * DAY) == ["warning", "warning", "problem"]


@sqlite
def test_only_damaged_backups_are_a_problem(doctor: Doctor, file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir(mode=0o700)
    assert doctor()[0] == 0
    made = create.create(file, backup_folder.new_name(folder, Clock().now())).file
    _middle(made)  # the part that only opening it shows
    code, found = doctor()
    assert (code, [finding["level"] for finding in found["backups"]]) == (1, ["warning", "problem"])
    assert found["backups"][1]["finding"] == f"There is no undamaged backup in {folder}."


@sqlite
def test_leftovers_of_interrupted_work_are_reported(file: Path) -> None:
    folder = file.parent / "backups"
    folder.mkdir()
    assert [finding.level for finding in files.check_leftovers(file, folder)] == ["ok"]
    left = [
        folder / ".musicsvc-20260101T000000Z.db.partial",
        file.with_name(".musicsvc.db.restoring"),
        file.with_name(".musicsvc.db.replaced"),
        file.with_name(".init-x"),
    ]
    for path in left:
        path.touch()
    with backup_folder.draft(folder / "musicsvc-20260102T000000Z.db"):
        left[0].touch()  # which the draft has swept
        leftovers = files.check_leftovers(file, folder)
    assert [str(path) for path in left] == [finding.finding.split()[0] for finding in leftovers]


@sqlite
@pytest.mark.parametrize(
    ("place", "level", "message", "hint"),
    [
        ("made.db", "ok", "has no problems", ""),
        ("new/folder/made.db", "ok", "does not exist yet", ""),
        ("damaged.db", "warning", "is damaged.", "The next server keeps it under another name and begins a new one."),
        (
            "musicsvc.db",
            "problem",
            "is not an activity log and was left unchanged.",
            "Set activity.file to another path.",
        ),
        ("backups", "problem", "Is a directory", "Let the server's user read and write it"),
        ("musicsvc.db/a.db", "problem", "musicsvc.db is not a folder.", "set activity.file to another path"),
        ("closed.db", "problem", "closed.db cannot be written by this user.", "Let the server's user"),
        ("closed/a.db", "problem", "closed cannot be written by this user.", "Let the server's user"),
        ("full.db", "problem", "unable to open", "Its disk must have free space"),
    ],
)
def test_an_activity_log_that_cannot_be_written_is_a_problem(
    file: Path, monkeypatch: pytest.MonkeyPatch, place: str, level: str, message: str, hint: str
) -> None:
    log = file.parent / place
    (file.parent / "backups").mkdir()
    (file.parent / "closed").mkdir()
    if place in {"made.db", "closed.db", "full.db"}:
        activity_log.create(f"sqlite:///{file}", log)
    if place == "damaged.db":
        log.write_bytes(b"no database at all, but long enough to be looked at")
    if place == "full.db":
        log.with_name("full.db-wal").mkdir()  # as a disk that takes no more files beside it
    access = os.access  # root may all
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in Path(path).name and access(path, mode))
    settings = config.load(options={"database_url": f"sqlite:///{file}", "activity.file": log})
    (finding,) = exposure.check_log(settings, file)
    assert (finding.check, finding.level) == ("activity log", level)
    assert message in finding.finding
    assert hint in finding.hint


def _pem(folder: Path, *, begins: timedelta, ends: timedelta) -> Server:
    """Return a certificate, valid between these times after NOW, and its key."""
    now = datetime(2026, 12, 1, 12, tzinfo=UTC)
    certificate = trustme.CA().issue_cert("localhost", not_before=now + begins, not_after=now + ends)
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(str(key))
    return Server(tls_cert=cert, tls_key=key)


YEAR, HOURS = timedelta(days=365), timedelta(hours=1)
PEM_END = "-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("begins", "ends", "level", "message"),
    [
        (-YEAR, 60 * YEAR, "ok", "is valid until"),
        (-YEAR, timedelta(days=14) + HOURS, "ok", "is valid until"),
        (-YEAR, timedelta(days=14), "warning", "expires in 14 days, on 2026-12-15"),
        (-YEAR, timedelta(days=9) + HOURS, "warning", "expires in 9 days, on 2026-12-10"),
        (-YEAR, timedelta(days=3), "warning", "expires in 3 days, on 2026-12-04"),
        (-YEAR, timedelta(days=3) - HOURS, "problem", "expires in 2 days, on 2026-12-04"),
        (-YEAR, 5 * HOURS, "problem", "expires in 5 hours, on 2026-12-01"),
        (-YEAR, -HOURS, "problem", "expired on 2026-12-01"),
        (HOURS, YEAR, "problem", "is not valid before 2026-12-01"),
    ],
)
def test_the_dates_of_a_certificate_are_checked(
    tmp_path: Path, begins: timedelta, ends: timedelta, level: str, message: str
) -> None:
    server = _pem(tmp_path, begins=begins, ends=ends)
    assert server.tls_cert is not None
    first, *_ = tls.validities(server.tls_cert)
    assert (first.begins, first.ends) == (
        NOW + int(begins.total_seconds()) * SECOND,
        NOW + int(ends.total_seconds()) * SECOND,
    )
    finding, *_ = exposure.check_tls(server, now=NOW)
    assert (finding.check, finding.level) == ("TLS", level)
    assert finding.finding.startswith(f"The certificate {message}")


@pytest.fixture(scope="module")
def valid_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Server, bytes]:
    """Return a certificate with its key, and its bytes."""
    server = _pem(tmp_path_factory.mktemp("valid"), begins=-YEAR, ends=YEAR)
    assert server.tls_cert is not None
    return server, ssl.PEM_cert_to_DER_cert(server.tls_cert.read_text().split("-----END CERTIFICATE-----")[0] + PEM_END)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=200), cut=st.integers(0, 2**16))
def test_an_invalid_certificate_file_is_a_problem(
    tmp_path: Path, valid_pair: tuple[Server, bytes], noise: bytes, cut: int
) -> None:
    server, der = valid_pair
    file = tmp_path / "noise.pem"
    undated = re.sub(rb"\d{10,12}Z", lambda found: b"x" * len(found[0]), der)
    framed = b"-----BEGIN CERTIFICATE-----\n%b\n-----END CERTIFICATE-----" % noise
    for content in (noise, framed, *(ssl.DER_cert_to_PEM_cert(each).encode() for each in (noise, undated))):
        file.write_bytes(content)
        with pytest.raises(Failure, match=rf"^{file} is not a valid PEM certificate\.$"):
            tls.validities(file)
    with pytest.raises(Failure, match=r"gone\.pem cannot be read: No such file or directory\.$"):
        tls.validities(tmp_path / "gone.pem")
    file.write_text(ssl.DER_cert_to_PEM_cert(der[: cut % len(der)]))
    (finding,) = exposure.check_tls(Server(tls_cert=file, tls_key=server.tls_key), now=NOW)
    assert finding.level == "problem"
    assert str(file) in finding.finding


def test_a_missing_certificate_or_another_key_is_a_problem(tmp_path: Path) -> None:
    server = _pem(tmp_path, begins=-YEAR, ends=YEAR)
    other = tmp_path / "other"
    other.mkdir()
    stranger = _pem(other, begins=-YEAR, ends=YEAR)
    for wrong in (
        Server(tls_cert=server.tls_cert, tls_key=stranger.tls_key),
        Server(tls_cert=server.tls_key, tls_key=server.tls_key),
        Server(tls_cert=tmp_path / "none.pem", tls_key=server.tls_key),
        Server(tls_cert=server.tls_cert),
    ):
        assert [finding.level for finding in exposure.check_tls(wrong, now=NOW)] == ["problem"]
    assert [finding.level for finding in exposure.check_tls(Server(), now=NOW)] == ["ok"]


@pytest.mark.parametrize(
    ("options", "level", "names"),
    [
        ({}, "ok", "No setting"),
        ({"server.public_url": "https://music.example"}, "ok", "No setting"),
        ({"server.host": "127.1.2.3"}, "ok", "No setting"),
        ({"server.host": "0.0.0.0"}, "problem", "0.0.0.0"),  # noqa: S104 - it is refused
        ({"server.public_url": "http://music.example"}, "problem", "server.public_url"),
        ({"server.trusted_proxies": ("0.0.0.0/0",)}, "problem", "server.trusted_proxies"),
        ({"server.trusted_proxies": ("::/0",)}, "problem", "server.trusted_proxies"),
        ({"limits.enabled": False}, "warning", "limits.enabled"),
        ({"server.public_url": "https://music.example", "server.local_http": True}, "warning", "server.local_http"),
        ({"server.public_url": "https://m.example", "registration.grants_access": True}, "warning", "registration"),
        ({"server.public_url": "https://m.example", "metrics.allow": ("0.0.0.0/0",)}, "warning", "metrics.allow"),
        ({"registration.grants_access": True, "metrics.allow": ("0.0.0.0/0",)}, "ok", "No setting"),
    ],
)
def test_an_unsafe_setting_is_named(options: dict[str, Any], level: str, names: str) -> None:
    (finding,) = exposure.check_settings(config.load(options=options))
    assert finding.level == level
    assert names in finding.finding


def test_a_low_limit_of_open_files_is_reported() -> None:
    assert exposure.check_open_files(config.load(options={"server.max_connections": 10})).level == "ok"
    asked = config.load(options={"server.max_connections": 10_000_000})
    assert exposure.check_open_files(asked).level in {"warning", "problem"}
