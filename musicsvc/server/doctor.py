"""Run all checks of `musicsvc doctor`. Certificates, settings, log and open files are checked in this module."""

import ipaddress
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from musicsvc.clock import DAY, HOUR, to_date
from musicsvc.config import Server, Settings
from musicsvc.errors import Damaged, Failure, Outdated
from musicsvc.server.network import tls
from musicsvc.server.process import resources
from musicsvc.store.activity import log as activity_log
from musicsvc.store.backups import folder as backup_folder
from musicsvc.store.doctor import Finding, database, failed, files, ok, problem, warning
from musicsvc.store.engine.sqlite import file_locks
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of, without_password

SOON, URGENT = 14 * DAY, 3 * DAY
RENEW = "Renew the certificate, and send SIGHUP to the server."
WIDEST = {4: 8, 6: 16}  # by IP version: the shortest prefix that can still be one organisation's network
FEW_CONNECTIONS = 1_000
SECONDS = 2.0  # the longest wait for the certificate of the running server


def check(settings: Settings, config_file: Path, *, now: int, beside: Store | None = None) -> Iterator[Finding]:
    """Yield the results of all checks of the installation. `config_file`: the settings file, which may not exist.

    `beside`: the store that this process has open. On PostgreSQL the checks use its connections.
    """
    path = path_of(settings.store_url)
    yield database.check_clock(now)
    found = database.check_database(settings.store_url, now=now, beside=beside)
    yield from found
    if path is not None or not any(finding.check == "database" for finding in found):
        yield from check_log(settings, path, beside)
        if read_url := settings.database_read_url:
            yield from _attempt("read replica", lambda: [database.check_replica(settings.store_url, read_url, beside)])
    yield from _attempt("permissions", lambda: files.check_permissions(*_private_files(settings, config_file, path)))
    if path is not None:
        yield from _of_files(settings, path, now)
    yield from _attempt("TLS", lambda: check_tls(settings.server, now=now))
    with suppress(Failure, OSError, ValueError):  # check_tls names what cannot be read; the server may stop just now
        yield from check_chain(settings.server)
        yield from check_running(settings, now=now)
    yield from check_settings(settings)
    yield check_open_files(settings)


def _attempt(check: str, run_check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check and return its results. If the check raises an error, return the error as a result of `check`."""
    try:
        return list(run_check())
    except Failure as failure:
        return [failed(check, failure)]
    except OSError as error:
        return [failed(check, Failure(f"{error.filename}: {error.strerror}."))]


def _private_files(settings: Settings, config_file: Path, path: Path | None) -> tuple[list[Path], list[Path]]:
    """Return the files and the folders that other users of the system should not be able to read."""
    secrets = [] if settings.server.tls_key is None else [settings.server.tls_key]
    if any(without_password(url) != url for url in (settings.database_url, settings.database_read_url)):
        secrets.append(config_file)
    if path is None:
        return secrets, []
    secrets += [path, path.with_name(path.name + "-wal"), _log(settings, path)]
    secrets += [entry.file for entry in backup_folder.entries(settings.backup_folder)]
    return secrets, [path.parent, settings.backup_folder]


def _log(settings: Settings, path: Path) -> Path:
    return settings.activity.file or activity_log.default_file(path)


def _of_files(settings: Settings, path: Path, now: int) -> Iterator[Finding]:
    """Yield the results of the checks of a SQLite installation: database file, disk space and backups."""
    folder = settings.backup_folder
    every = settings.backups.every_hours
    yield from files.check_writable(path, folder)
    yield from _attempt("disk", lambda: files.check_disks(path, folder, (_log(settings, path).parent,)))
    yield from _attempt("ballast", lambda: files.check_reserved_space(path))
    yield from _attempt("backups", lambda: files.check_backups(path, folder, every, now=now))
    yield from _attempt("leftovers", lambda: files.check_leftovers(path, folder))


def check_log(settings: Settings, path: Path | None, beside: Store | None = None) -> Iterator[Finding]:
    """Yield the results of the checks of the activity log. `beside`: as in `check`."""
    unwritable = files.check_log_file(_log(settings, path)) if path is not None else []
    if unwritable:
        yield from unwritable
        return
    hint = "The server renames the file when it starts, and creates a new activity log."
    try:
        wrong = activity_log.problems(settings.store_url, settings.activity.file, beside=beside)
    except (Damaged, Outdated) as failure:
        found = failed("activity log", failure, hint)
        yield warning(found.check, found.finding, found.hint)
        return
    except Failure as failure:
        yield failed("activity log", failure, files.LOG_HINT)
        return
    for line in wrong:
        yield warning("activity log", line, hint)
    if not wrong:
        yield ok("activity log", "The activity log has no problems, or does not exist yet.")


def check_tls(server: Server, *, now: int) -> Iterator[Finding]:
    """Check that the certificates are valid now, and that the key belongs to the certificate."""
    if server.tls_cert is None and server.tls_key is None:
        yield ok("TLS", "No certificate is set: a proxy does TLS, or requests stay on this machine.")
        return
    try:
        tls.create_context(server)
        validities = tls.validities(server.tls_cert) if server.tls_cert else []
    except Failure as failure:
        yield problem("TLS", failure.message, "Set server.tls_cert and server.tls_key to a certificate and its key.")
        return
    for number, validity in enumerate(validities, 1):
        yield _check_validity("The certificate" if number == 1 else f"Certificate {number} of the chain", validity, now)


def check_running(settings: Settings, *, now: int) -> Iterator[Finding]:
    """Check the certificate of the running server of this machine, if it is not the one in the settings."""
    root = file_locks.served_at(settings.place, settings.server.port)
    if root is None or not root.startswith("https:"):
        return
    address = urlsplit(root)
    text = ssl.get_server_certificate((address.hostname or "", address.port or 443), timeout=SECONDS)
    used = ssl.PEM_cert_to_DER_cert(text)
    file, validity = settings.server.tls_cert, tls.validity(used)
    if file is None:
        yield _check_validity("The certificate of the running server", validity, now)
    elif used not in tls.certificates(file)[:1]:
        finding = f"The running server still uses another certificate, which expires on {to_date(validity.ends)}."
        yield (problem if validity.ends < now + URGENT else warning)("TLS", finding, "Send SIGHUP to the server.")


def check_chain(server: Server) -> Iterator[Finding]:
    """Check that the certificate file contains intermediate authorities, unless this machine knows the issuer."""
    if server.tls_cert is not None and len(tls.certificates(server.tls_cert)) == 1 and tls.lacks_issuer(server):
        finding = "This machine does not know the certificate's issuer, and the file contains no further certificate."
        yield warning("TLS", finding, "Use the full chain, unless all clients know the issuer.")


def _check_validity(name: str, validity: tls.Validity, now: int) -> Finding:
    begins, ends = to_date(validity.begins), to_date(validity.ends)
    if validity.ends <= now:
        return problem("TLS", f"{name} expired on {ends}.", RENEW)
    if validity.begins > now:
        return problem("TLS", f"{name} is not valid before {begins}.", "Check the clock, or renew the certificate.")
    if validity.ends <= now + SOON:
        left = validity.ends - now
        remaining = f"{left // DAY} days" if left >= 2 * DAY else f"{left / HOUR:.0f} hours"
        return (problem if left < URGENT else warning)("TLS", f"{name} expires in {remaining}, on {ends}.", RENEW)
    return ok("TLS", f"{name} is valid until {ends}.")


def check_settings(settings: Settings) -> list[Finding]:
    """Return a finding for each setting that exposes tokens or grants rights too widely."""
    return list(_unsafe(settings)) or [ok("settings", "No setting is unsafe.")]


def _unsafe(settings: Settings) -> Iterator[Finding]:
    server = settings.server
    try:
        tls.require_encryption(server)
    except Failure as failure:
        yield failed("settings", failure)
    if server.public_url is not None and server.public_url.startswith("http://"):
        finding = "server.public_url begins with http://: clients would send tokens unencrypted."
        yield problem("settings", finding, "Set server.public_url to the https:// address.")
    for network in server.trusted_proxies:
        if _is_wide(network):
            finding = f"server.trusted_proxies contains {network}: any host there can claim TLS for a request."
            yield problem("settings", finding, "In server.trusted_proxies, list only the addresses of your proxies.")
    if not settings.limits.enabled:
        yield warning("settings", "Rate limits and abuse handling are off (limits.enabled).", "Turn them on.")
    if settings.hosted:
        yield from _unsafe_when_hosted(settings)


def _unsafe_when_hosted(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each setting that is unsafe on a server with a public address."""
    if settings.server.local_http:
        finding = "Plain HTTP within the machine is answered on a hosted service (server.local_http)."
        yield warning("settings", finding, "Turn server.local_http off, unless your proxy sends no X-Forwarded-Proto.")
    if settings.registration.open and settings.registration.grants_access:
        finding = "Everyone who registers gets API access (registration.grants_access)."
        yield warning("settings", finding, "Turn registration.grants_access off, and grant access by hand.")
    for network in settings.metrics.allow:
        if _is_wide(network):
            yield warning(
                "settings",
                f"metrics.allow contains {network}: any host there can read the metrics.",
                "In metrics.allow, list only the addresses that collect metrics.",
            )


def _is_wide(network: str) -> bool:
    parsed = ipaddress.ip_network(network, strict=False)
    return not parsed.is_loopback and parsed.prefixlen < WIDEST[parsed.version]


def check_open_files(settings: Settings) -> Finding:
    """Check that the limit of open files allows as many connections as `server.max_connections`."""
    resources.raise_file_limit()
    possible, wanted = resources.max_connections(), -(-settings.server.max_connections // settings.server.workers)
    if possible >= wanted:
        return ok("descriptors", f"A process can have {wanted:,} open connections.")
    finding = f"The system allows a process {possible:,} connections; server.max_connections needs {wanted:,}."
    remedy = "Raise the limit of open files (ulimit -n, LimitNOFILE)."
    return (problem if possible < FEW_CONNECTIONS else warning)("descriptors", finding, remedy)
