"""Checks of certificates, settings, the activity log and the limit of open files."""

import os
import re
import resource
import ssl
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsvc import config
from musicsvc.clock import SECOND, Clock, parse
from musicsvc.config import Server
from musicsvc.errors import Failure
from musicsvc.server import doctor as exposure
from musicsvc.server.network import tls
from musicsvc.store import opening
from musicsvc.store.activity import log as activity_log
from musicsvc.store.doctor import Finding, Level, ok, problem, warning
from tests.support.postgres import limited_role

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

NOW = parse("2026-12-01T12:00:00Z")


@pytest.mark.only_on("postgres")
def test_the_checks_of_a_server_need_no_connection_beside_its_own(store_url: str, tmp_path: Path) -> None:
    psycopg = pytest.importorskip("psycopg")
    now = Clock().now()
    with limited_role(store_url, 8) as url, opening.connect(url) as store, ExitStack() as closing:
        others: list[Any] = []
        store.write(lambda: None).result()
        for _ in range(20):  # one that was closed counts for a moment longer
            with suppress(psycopg.OperationalError):  # the role has no more
                while len(others) < 8:
                    others.append(closing.enter_context(psycopg.connect(url)))
            time.sleep(0.05)
        assert len(others) < 8
        settings = config.Settings(database_url=url, data_dir=tmp_path)
        wrong, right = (
            {each.check for each in exposure.check(settings, tmp_path / "none", now=now, beside=beside) if is_of(each)}
            for beside in (None, store)
        )
    assert wrong == {"database"}
    assert {"pragmas", "schema", "counts", "activity log"} <= right
    assert "database" not in right


def is_of(found: Finding) -> bool:
    """Return whether the finding is about the database or the log in it."""
    return found.check in {"database", "pragmas", "schema", "counts", "activity log"}


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
        ("null.db", "problem", "is not an activity log and was left unchanged.", "Set activity.file to another path."),
        ("backups", "problem", "Is a directory", "Let the server's user read and write it"),
        ("musicsvc.db/a.db", "problem", "musicsvc.db is not a folder.", "set activity.file to another path"),
        ("closed.db", "problem", "closed.db cannot be written by this user.", "Let the server's user"),
        ("closed/a.db", "problem", "closed cannot be written by this user.", "Let the server's user"),
        ("full.db", "problem", "unable to open", "Its disk must have free space and inodes"),
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
    if place == "null.db":
        log.symlink_to("/dev/null")
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


RENEW = "Renew the certificate, and send SIGHUP to the server."
YEAR, HOURS = timedelta(days=365), timedelta(hours=1)


PEM_END = "-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    ("begins", "ends", "level", "message", "hint"),
    [
        (-YEAR, 60 * YEAR, "ok", "is valid until 2086-11-16", ""),
        (-YEAR, timedelta(days=14) + HOURS, "ok", "is valid until 2026-12-15", ""),
        (-YEAR, timedelta(days=14), "warning", "expires in 14 days, on 2026-12-15", RENEW),
        (-YEAR, timedelta(days=9) + HOURS, "warning", "expires in 9 days, on 2026-12-10", RENEW),
        (-YEAR, timedelta(days=3), "warning", "expires in 3 days, on 2026-12-04", RENEW),
        (-YEAR, timedelta(days=3) - HOURS, "problem", "expires in 2 days, on 2026-12-04", RENEW),
        (-YEAR, timedelta(days=2), "problem", "expires in 2 days, on 2026-12-03", RENEW),
        (-YEAR, timedelta(days=2) - HOURS, "problem", "expires in 47 hours, on 2026-12-03", RENEW),
        (-YEAR, 5 * HOURS, "problem", "expires in 5 hours, on 2026-12-01", RENEW),
        (-YEAR, 0 * HOURS, "problem", "expired on 2026-12-01", RENEW),
        (-YEAR, -HOURS, "problem", "expired on 2026-12-01", RENEW),
        (0 * HOURS, YEAR, "ok", "is valid until 2027-12-01", ""),
        (HOURS, YEAR, "problem", "is not valid before 2026-12-01", "Check the clock, or renew the certificate."),
    ],
)
def test_the_dates_of_a_certificate_are_checked(
    tmp_path: Path, begins: timedelta, ends: timedelta, level: Level, message: str, hint: str
) -> None:
    server = _pem(tmp_path, begins=begins, ends=ends)
    assert server.tls_cert is not None
    first, *_ = tls.validities(server.tls_cert)
    assert (first.begins, first.ends) == (
        NOW + int(begins.total_seconds()) * SECOND,
        NOW + int(ends.total_seconds()) * SECOND,
    )
    assert list(exposure.check_tls(server, now=NOW)) == [Finding("TLS", level, f"The certificate {message}.", hint)]


def test_each_certificate_of_a_chain_is_checked(tmp_path: Path) -> None:
    server = _pem(tmp_path, begins=-YEAR, ends=YEAR)
    (tmp_path / "old").mkdir()
    old = _pem(tmp_path / "old", begins=-YEAR, ends=-HOURS)
    assert server.tls_cert is not None
    assert old.tls_cert is not None
    name = "friendlyName: Müller\n".encode()  # as openssl pkcs12 writes it
    server.tls_cert.write_bytes(server.tls_cert.read_bytes() + name + old.tls_cert.read_bytes())
    assert list(exposure.check_tls(server, now=NOW)) == [
        ok("TLS", "The certificate is valid until 2027-12-01."),
        problem("TLS", "Certificate 2 of the chain expired on 2026-12-01.", RENEW),
    ]


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


def test_a_certificate_without_its_intermediate_authority_is_a_warning(tmp_path: Path) -> None:
    root = trustme.CA()
    leaf = root.create_child_ca().issue_cert("localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    key.write_bytes(leaf.private_key_pem.bytes())
    server = Server(tls_cert=cert, tls_key=key)
    chain = [blob.bytes() for blob in leaf.cert_chain_pems]
    levels = []
    for content in (chain, chain[:1]):
        cert.write_bytes(b"".join(content))
        levels.append([finding.level for finding in exposure.check_chain(server)])
    assert levels == [[], ["warning"]]
    assert list(exposure.check_chain(Server())) == []


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
        (found,) = exposure.check_tls(wrong, now=NOW)
        assert (found.check, found.level) == ("TLS", "problem")
        assert found.hint == "Set server.tls_cert and server.tls_key to a certificate and its key."
    none = "No certificate is set: a proxy does TLS, or requests stay on this machine."
    assert list(exposure.check_tls(Server(), now=NOW)) == [ok("TLS", none)]


SAFE = ok("settings", "No setting is unsafe.")
NO_LIMITS = warning("settings", "Rate limits and abuse handling are off (limits.enabled).", "Turn them on.")
PLAIN = problem(
    "settings",
    "server.public_url begins with http://: clients would send tokens unencrypted.",
    "Set server.public_url to the https:// address.",
)
LOCAL = warning(
    "settings",
    "Plain HTTP within the machine is answered on a hosted service (server.local_http).",
    "Turn server.local_http off, unless your proxy sends no X-Forwarded-Proto.",
)
GRANTING = warning(
    "settings",
    "Everyone who registers gets API access (registration.grants_access).",
    "Turn registration.grants_access off, and grant access by hand.",
)
HOSTED: dict[str, Any] = {"server.public_url": "https://music.example"}
WIDE_METRICS = "metrics.allow contains {}: any host there can read the metrics."
WIDE_PROXIES = "server.trusted_proxies contains {}: any host there can claim TLS for a request."


def metrics(network: str) -> Finding:
    hint = "In metrics.allow, list only the addresses that collect metrics."
    return warning("settings", WIDE_METRICS.format(network), hint)


def proxies(network: str) -> Finding:
    hint = "In server.trusted_proxies, list only the addresses of your proxies."
    return problem("settings", WIDE_PROXIES.format(network), hint)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [SAFE]),
        (HOSTED, [SAFE]),
        ({"server.host": "127.1.2.3"}, [SAFE]),
        ({"server.public_url": "http://music.example"}, [PLAIN]),
        (
            {"server.trusted_proxies": ("0.0.0.0/0", "10.0.0.0/7", "10.0.0.0/8")},
            [proxies("0.0.0.0/0"), proxies("10.0.0.0/7")],
        ),
        (
            {"server.trusted_proxies": ("::/0", "fd00::/15", "fd00::/16", "127.0.0.0/8")},
            [proxies("::/0"), proxies("fd00::/15")],
        ),
        ({"limits.enabled": False}, [NO_LIMITS]),
        (HOSTED | {"server.local_http": True}, [LOCAL]),
        (HOSTED | {"registration.grants_access": True}, [GRANTING]),
        (HOSTED | {"registration.grants_access": True, "registration.open": False}, [SAFE]),
        (HOSTED | {"metrics.allow": ("0.0.0.0/0", "10.0.0.0/8")}, [metrics("0.0.0.0/0")]),
        ({"registration.grants_access": True, "metrics.allow": ("0.0.0.0/0",), "server.local_http": True}, [SAFE]),
        (
            {"server.public_url": "http://music.example", "server.trusted_proxies": ("::/0",), "limits.enabled": False}
            | {"server.local_http": True, "registration.grants_access": True, "metrics.allow": ("::/0",)},
            [PLAIN, proxies("::/0"), NO_LIMITS, LOCAL, GRANTING, metrics("::/0")],
        ),
    ],
)
def test_an_unsafe_setting_is_named(options: dict[str, Any], expected: list[Finding]) -> None:
    assert exposure.check_settings(config.load(options=options)) == expected


def test_an_unencrypted_address_is_a_problem() -> None:
    (found,) = exposure.check_settings(config.load(options={"server.host": "0.0.0.0"}))  # noqa: S104 - it is refused
    assert (found.check, found.level) == ("settings", "problem")
    assert found.finding == "0.0.0.0 is reachable from other machines, and plain HTTP would expose tokens."
    assert found.hint == "Pass --tls-cert and --tls-key, or name your TLS proxy in server.trusted_proxies."


def test_a_low_limit_of_open_files_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = [1256, 1256]
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(limit))

    def found(wanted: int, workers: int = 1) -> Finding:
        options: dict[str, Any] = {"server.max_connections": wanted, "server.workers": workers}
        return exposure.check_open_files(config.load(options=options))

    remedy = "Raise the limit of open files (ulimit -n, LimitNOFILE)."
    fault = "The system allows a process {} connections; server.max_connections needs {}."
    assert found(1000) == ok("descriptors", "A process can have 1,000 open connections.")
    assert found(2000, workers=2) == ok("descriptors", "A process can have 1,000 open connections.")
    assert found(1001) == warning("descriptors", fault.format("1,000", "1,001"), remedy)
    assert found(2001, workers=2) == warning("descriptors", fault.format("1,000", "1,001"), remedy)
    limit[:] = [1255, 1255]
    assert found(1000) == problem("descriptors", fault.format("999", "1,000"), remedy)


def test_a_check_that_cannot_be_made_says_why() -> None:
    def fail() -> list[Finding]:
        raise PermissionError(13, "Permission denied", "/srv/music")

    hint = "Check the permissions of the file, and which user runs this command."
    assert exposure._attempt("disk", fail) == [problem("disk", "/srv/music: Permission denied.", hint)]


@pytest.mark.parametrize(("login", "private"), [("", []), ("ann@", []), ("ann:secret@", [Path("config.toml")])])
def test_settings_with_a_password_are_private(login: str, private: list[Path]) -> None:
    found = config.load(options={"database_url": f"postgresql://{login}db/music"})
    assert exposure._private_files(found, Path("config.toml"), None) == (private, [])
