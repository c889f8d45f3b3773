"""The client of a request and its connection: TLS, trusted proxies, plain HTTP on this machine (docs/api.md)."""

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
HSTS = {"Strict-Transport-Security": "max-age=31536000"}  # browsers use only HTTPS for a year
PROTO = re.compile(r"(?:^|[;,\s])proto=\"?([^\s;,\"]*)", re.IGNORECASE)  # in the Forwarded header


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of a request, as far as the connection and trusted proxies identify it.

    - `secure`: the request came over TLS, or is local.
    - `local`: the client runs on this machine.
    - `forwarded`: the request has a proxy's headers.
    - `hsts`: the answer carries Strict-Transport-Security.
    """

    address: str
    secure: bool
    local: bool
    forwarded: bool
    hsts: bool


class PeerResolver:
    """Identifies the client of each request by the settings for proxies and TLS."""

    def __init__(self, settings: Settings) -> None:
        self._trusted = [ipaddress.ip_network(name, strict=False) for name in settings.server.trusted_proxies]
        self._https = served_over_https(settings.server)
        self._local_http = settings.server.local_http or not settings.hosted

    def resolve(self, remote: str, headers: CIMultiDictProxy[str], *, tls: bool) -> Peer:
        """Return the client behind a request that came from the socket address `remote`."""
        peer = _address(remote)
        forwarded = any(name in headers for name in FORWARDING) or any(
            name.lower().startswith("x-forwarded-") for name in headers
        )
        trusted = peer is not None and self._trusts(peer)
        protocols = _members(headers, "X-Forwarded-Proto")
        encrypted = tls or (trusted and _all_https(protocols))
        loopback = peer is not None and peer.is_loopback
        says_https = _all_https(protocols or PROTO.findall(",".join(headers.getall("Forwarded", ()))))
        local = loopback and self._local_http and (not forwarded or says_https)
        address = self._client(peer, headers) if trusted else str(peer or remote)
        return Peer(address, encrypted or local, local, forwarded, hsts=encrypted or self._https)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted if network.version == address.version)

    def _client(self, peer: Address | None, headers: CIMultiDictProxy[str]) -> str:
        """Return the right-most address of X-Forwarded-For that does not belong to a trusted proxy."""
        client = peer
        for part in reversed(_members(headers, "X-Forwarded-For")):
            hop = _hop(part)
            if hop is None:
                break
            client = hop
            if not self._trusts(hop):
                break
        return str(client)


def served_over_https(server: Server) -> bool:
    """Return whether `server.public_url` begins with https://, so that clients use nothing else."""
    return server.public_url is not None and server.public_url.startswith("https://")


def require_https(peer: Peer) -> None:
    """Raise Forbidden for a request that is neither over TLS nor local. There is no redirect to HTTPS."""
    if not peer.secure:
        raise Forbidden("HTTPS is required.")


def _members(headers: CIMultiDictProxy[str], name: str) -> list[str]:
    """Return the members of a header that holds a list, left to right, over all its lines."""
    return [part.strip() for line in headers.getall(name, ()) for part in line.split(",")]


def _all_https(protocols: Sequence[str]) -> bool:
    """Return whether every proxy was reached over TLS. Clients can only add to this list, never remove from it."""
    return bool(protocols) and all(protocol.lower() == "https" for protocol in protocols)


def _hop(text: str) -> Address | None:
    """Parse a member of X-Forwarded-For, to which some proxies add a port."""
    return _address(text.strip("[]")) or _address(text.rpartition(":")[0].strip("[]"))


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
