"""Checks of certificates, settings, the activity log and the limit of open files."""

import os
import re
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsvc import config
from musicsvc.clock import SECOND, parse
from musicsvc.config import Server
from musicsvc.errors import Failure
from musicsvc.server import doctor as exposure
from musicsvc.server.network import tls
from musicsvc.store.activity import log as activity_log

NOW = parse("2026-12-01T12:00:00Z")


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    ("place", "level", "message", "hint"),
    [
        ("made.db", "ok", "has no problems", ""),
        ("new/folder/made.db", "ok", "does not exist yet", ""),
        ("damaged.db", "warning", "is damaged.", "The server renames it at its next start and creates a new one."),
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
