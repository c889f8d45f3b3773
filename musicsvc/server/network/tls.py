"""The settings of a running server: TLS, no plain HTTP to other machines, and when certificates are valid."""

import ipaddress
import logging
import re
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from musicsvc.clock import EPOCH, to_date
from musicsvc.config import Server, Settings
from musicsvc.errors import Failure
from musicsvc.networks import listening_url, root_url
from musicsvc.store.engine.url import path_of

log = logging.getLogger("musicsvc")
BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
NO_ISSUER = 20  # X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY of OpenSSL
VERSION = 0xA0  # DER tag
LONG = 0x80  # flag: the length is written in several bytes, whose number follows
FORMATS = {13: "%y%m%d%H%M%SZ", 15: "%Y%m%d%H%M%SZ"}


def create_context(server: Server) -> ssl.SSLContext | None:
    """Return the TLS context, or None without TLS. Raises Failure if a file is unreadable or invalid."""
    if server.tls_cert is None and server.tls_key is None:
        return None
    if server.tls_cert is None or server.tls_key is None:
        raise Failure("TLS needs both --tls-cert and --tls-key.")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        for path in (server.tls_cert, server.tls_key):
            path.open("rb").close()
        # With an empty password, a key with a passphrase is an error; without a password, OpenSSL would prompt.
        context.load_cert_chain(server.tls_cert, server.tls_key, password="")
    except ssl.SSLError as error:
        reason = f" ({error.reason.lower().replace('_', ' ')})" if error.reason else ""
        raise Failure(
            f"{server.tls_cert} and {server.tls_key} are not a valid certificate and its key, in PEM and without a"
            f" passphrase{reason}."
        ) from None
    except OSError as error:
        raise Failure(f"{error.filename} cannot be read: {error.strerror}.") from None
    return context


def require_encryption(server: Server) -> None:
    """Raise Failure if other machines could connect without TLS and no trusted proxy is configured."""
    proxied = server.trusted_proxies != Server().trusted_proxies
    if server.tls_cert is None and not proxied and not is_loopback(server.host):
        raise Failure(
            f"{server.host} is reachable from other machines, and plain HTTP would expose tokens. Pass --tls-cert and"
            " --tls-key, or name your TLS proxy in server.trusted_proxies."
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Validity:
    """The period in which a certificate is valid, as times in microseconds since 1970."""

    begins: int
    ends: int


def validities(file: Path) -> list[Validity]:
    """Return the validity of each certificate in the file, in file order. Raises Failure if there is none."""
    try:
        found = [validity(each) for each in certificates(file)]
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, LookupError):
        raise Failure(f"{file} is not a valid PEM certificate.") from None
    if not found:
        raise Failure(f"{file} is not a valid PEM certificate.")
    return found


def lacks_issuer(server: Server) -> bool:
    """Return whether clients with the authorities of this machine do not find the issuer of the certificate."""
    context = create_context(server)
    if context is None:
        return False
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = trusting.wrap_bio(down, up), context.wrap_bio(up, down, server_side=True)
    for side in sides * 2:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            return error.verify_code == NO_ISSUER
    return False


def certificates(file: Path) -> list[bytes]:
    """Return the certificates in the file, in DER. Raises OSError or ValueError if it cannot be read."""
    blocks = BLOCK.findall(file.read_text("latin-1"))  # names may be beside the certificates
    return [ssl.PEM_cert_to_DER_cert(block) for block in blocks]


def validity(der: bytes) -> Validity:
    """Return the validity of a certificate in DER, where it is the fifth signed field (RFC 5280, section 4.1)."""
    _, certificate, _ = _element(der, 0)
    _, at, _ = _element(der, certificate)
    tag, _, after = _element(der, at)
    if tag == VERSION:
        at = after
    for _ in ("serial number", "signature", "issuer"):
        _, _, at = _element(der, at)
    _, first, _ = _element(der, at)
    _, begin, second = _element(der, first)
    _, other, end = _element(der, second)
    return Validity(_instant(der[begin:second]), _instant(der[other:end]))


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the DER element at index `at`, and the indexes where its content begins and ends."""
    length, begin = der[at + 1], at + 2
    if length & LONG:
        size = length & ~LONG
        length, begin = int.from_bytes(der[begin : begin + size], "big"), begin + size
    return der[at], begin, begin + length


def _instant(text: bytes) -> int:
    moment = datetime.strptime(text.decode("ascii"), FORMATS[len(text)]).replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Valid settings, with the TLS context made from their certificate.

    Workers do not read the file again, which may have been replaced or removed when one starts in place of another.
    """

    settings: Settings
    tls: ssl.SSLContext | None
    validities: tuple[Validity, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Load the certificate. Raises Failure if it is unusable, or if tokens would be sent over plain HTTP.

        Raises Failure if there is a read replica of a SQLite file, too.
        """
        if settings.database_read_url and path_of(settings.store_url) is not None:
            raise Failure("database_read_url is set, but database_url is not that of a PostgreSQL server. Unset it.")
        context = create_context(settings.server)
        require_encryption(settings.server)
        return cls(settings, context, tuple(validities(file) if (file := settings.server.tls_cert) else ()))

    def warn(self, now: int) -> None:
        """Log each certificate that clients refuse for its time."""
        for each in self.validities:
            if not each.begins <= now < each.ends:
                period = to_date(each.begins), to_date(each.ends)
                file = self.settings.server.tls_cert
                log.warning("%s has a certificate for %s to %s only: clients refuse it", file, *period)

    def root(self, listener: socket.socket) -> str:
        """Return the service's root URL, with the port of the listener. It never depends on the Host header."""
        return root_url(self.settings.server, listener.getsockname()[1])

    def listening(self, listener: socket.socket) -> str:
        """Return the root URL for programs of this machine."""
        return listening_url(self.settings.server, listener.getsockname()[1])
