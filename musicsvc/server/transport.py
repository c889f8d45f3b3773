"""Who speaks, and over what: TLS, trusted proxies, plain HTTP that stays on this machine (contract.md, section 6)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from musicsvc.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from multidict import CIMultiDictProxy

    from musicsvc.config import Settings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDING = ("Forwarded", "X-Real-IP", "Via")


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of a request: its `address`, and whether the request began and ended on this machine."""

    address: str
    secure: bool
    local: bool
    forwarded: bool


class Transport:
    """Judges each request by the settings."""

    def __init__(self, settings: Settings) -> None:
        self._trusted = networks(settings.server.trusted_proxies)
        self._local_http = settings.server.local_http or not settings.hosted

    def judge(self, remote: str, headers: CIMultiDictProxy[str], *, tls: bool) -> Peer:
        """The peer behind a request that came from the socket address `remote`."""
        peer = _address(remote)
        forwarded = any(name in headers for name in FORWARDING) or any(
            name.lower().startswith("x-forwarded-") for name in headers
        )
        trusted = peer is not None and self._trusts(peer)
        says_https = _last(headers, "X-Forwarded-Proto").lower() == "https"
        secure = tls or (trusted and says_https)
        loopback = peer is not None and peer.is_loopback
        local = loopback and self._local_http and (not forwarded or says_https)
        address = self._client(peer, headers) if trusted else str(peer or remote)
        return Peer(address, secure or local, local, forwarded)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted if network.version == address.version)

    def _client(self, peer: Address | None, headers: CIMultiDictProxy[str]) -> str:
        """The right-most address of X-Forwarded-For that is no trusted proxy's."""
        chain = [part.strip() for line in headers.getall("X-Forwarded-For", ()) for part in line.split(",")]
        client = peer
        for part in reversed(chain):
            hop = _address(part)
            if hop is None:
                break
            client = hop
            if not self._trusts(hop):
                break
        return str(client)


def require_https(peer: Peer) -> None:
    """Raises Forbidden for a request that is neither over TLS nor local; never a redirect."""
    if not peer.secure:
        raise Forbidden("HTTPS is required.")


def networks(names: Sequence[str]) -> list[Network]:
    """The networks of a setting such as `10.1.2.0/24`; raises ValueError."""
    return [ipaddress.ip_network(name, strict=False) for name in names]


def _last(headers: CIMultiDictProxy[str], name: str) -> str:
    return ",".join(headers.getall(name, ())).rpartition(",")[2].strip()


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
