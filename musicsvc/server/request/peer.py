"""Who speaks, and over what: TLS, trusted proxies, plain HTTP that stays on this machine (docs/operating.md, HTTPS)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multidict import CIMultiDictProxy

    from musicsvc.config import Server, Settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
FORWARDING = ("Forwarded", "X-Real-IP", "Via")
STRICT = {"Strict-Transport-Security": "max-age=31536000"}  # browsers use HTTPS alone for a year
PROTO = re.compile(r"(?:^|[;,\s])proto=\"?([^\s;,\"]*)", re.IGNORECASE)  # of the Forwarded header


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of a request: its `address`, and whether the request began and ended on this machine.

    `strict`: whether the answer carries Strict-Transport-Security.
    """

    address: str
    secure: bool
    local: bool
    forwarded: bool
    strict: bool


class Transport:
    """Judges each request by the settings."""

    def __init__(self, settings: Settings) -> None:
        self._trusted = [ipaddress.ip_network(name, strict=False) for name in settings.server.trusted_proxies]
        self._https = served_over_https(settings.server)
        self._local_http = settings.server.local_http or not settings.hosted

    def judge(self, remote: str, headers: CIMultiDictProxy[str], *, tls: bool) -> Peer:
        """The peer behind a request that came from the socket address `remote`."""
        peer = _address(remote)
        forwarded = any(name in headers for name in FORWARDING) or any(
            name.lower().startswith("x-forwarded-") for name in headers
        )
        trusted = peer is not None and self._trusts(peer)
        protocols = _listed(headers, "X-Forwarded-Proto")
        encrypted = tls or (trusted and _all_https(protocols))
        loopback = peer is not None and peer.is_loopback
        says_https = _all_https(protocols or PROTO.findall(",".join(headers.getall("Forwarded", ()))))
        local = loopback and self._local_http and (not forwarded or says_https)
        address = self._client(peer, headers) if trusted else str(peer or remote)
        return Peer(address, encrypted or local, local, forwarded, strict=encrypted or self._https)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted if network.version == address.version)

    def _client(self, peer: Address | None, headers: CIMultiDictProxy[str]) -> str:
        """The right-most address of X-Forwarded-For that is no trusted proxy's."""
        client = peer
        for part in reversed(_listed(headers, "X-Forwarded-For")):
            hop = _hop(part)
            if hop is None:
                break
            client = hop
            if not self._trusts(hop):
                break
        return str(client)


def served_over_https(server: Server) -> bool:
    """Whether `server.public_url` is on https, so that clients use nothing else."""
    return server.public_url is not None and server.public_url.startswith("https://")


def require_https(peer: Peer) -> None:
    """Raises Forbidden for a request that is neither over TLS nor local; never a redirect."""
    if not peer.secure:
        raise Forbidden("HTTPS is required.")


def _listed(headers: CIMultiDictProxy[str], name: str) -> list[str]:
    """The members of a header that holds a list, left to right, over all its lines."""
    return [part.strip() for line in headers.getall(name, ()) for part in line.split(",")]


def _all_https(protocols: Sequence[str]) -> bool:
    """Whether every proxy on the way was spoken to over TLS; a client can add to the list, not take away from it."""
    return bool(protocols) and all(protocol.lower() == "https" for protocol in protocols)


def _hop(text: str) -> Address | None:
    """An address of X-Forwarded-For, which some proxies write with a port."""
    return _address(text.strip("[]")) or _address(text.rpartition(":")[0].strip("[]"))


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
