"""The sender of a request: client, trusted proxies, HTTPS, and browser code of other origins (docs/api.md)."""

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from musicsvc.config import Server, Settings
from musicsvc.errors import Failure, Forbidden, MethodNotAllowed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
PROXY_HEADER = re.compile(r"forwarded|via|x-real-ip|x-forwarded-.*", re.IGNORECASE)
NO_HEADERS = CIMultiDictProxy(CIMultiDict[str]())
HOST = re.compile(r"(?:\[([^%\[\]]+)\]|([^%:\[\]]+))(?::[0-9]*)?")
THIS_MACHINE = "localhost"  # also the names below it
LONGEST_HOST = 300  # characters of a name and a port
CLIENTS = 4096  # whose last resolution is kept
HSTS = {"Strict-Transport-Security": "max-age=31536000"}  # browsers use only HTTPS for a year
VARY = "Authorization, Accept-Encoding"  # what the responses to clients of one origin depend on
VARYING = {"Vary": f"Origin, {VARY}"}
PREFER = "Prefer"
KEY, REPLAYED = "Idempotency-Key", "Idempotency-Replayed"
ALLOW_ORIGIN = "Access-Control-Allow-Origin"
READABLE = (
    f"Content-Disposition, Deprecation, ETag, {REPLAYED}, Link, Preference-Applied, RateLimit, RateLimit-Policy,"
    " Retry-After, Sunset, Token-Expires-At, WWW-Authenticate, X-Ignored, X-RateLimit-Limit, X-RateLimit-Remaining,"
    " X-RateLimit-Reset, X-Request-Id"
)
PROTO = re.compile(r"(?:^|[;,\s])proto=\"?([^\s;,\"]*)", re.IGNORECASE)  # in the Forwarded header


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of a request, as far as the connection and trusted proxies identify it."""

    address: str
    secure: bool  # the request came over TLS, or `local` is set
    local: bool  # the client runs on this machine and names it as the host, and the settings allow it plain HTTP
    forwarded: bool  # the request has headers that proxies add
    encrypted: bool  # the client uses TLS, to this process or to a trusted proxy
    hsts: bool  # the response has Strict-Transport-Security
    limits_apply: bool  # rate limits and abuse rules apply
    misnamed: bool = False  # `local` is not set only because the Host header names something else


class PeerResolver:
    def __init__(self, settings: Settings) -> None:
        self._trusted = [ipaddress.ip_network(name, strict=False) for name in settings.server.trusted_proxies]
        self._https = served_over_https(settings.server)
        self._local_http = settings.server.local_http or not settings.hosted
        self._limits = settings.limits
        public = urlsplit(settings.server.public_url or "").hostname
        self._hosts = {_normalized(name) for name in (settings.server.host, public) if name}
        self._resolve_direct = lru_cache(CLIENTS)(partial(self._resolve, NO_HEADERS, forwarded=False))

    def resolve(self, remote: str, headers: CIMultiDictProxy[str], *, tls: bool) -> Peer:
        """Return the client. `remote`: the connection's address, perhaps a proxy's. `tls`: the connection uses TLS."""
        host = ",".join(headers.getall("Host", ()))  # several are joined, which is the name of no host
        host = host if len(host) <= LONGEST_HOST else ","  # neither is a longer one, and it would be kept
        if any(map(PROXY_HEADER.fullmatch, headers)):
            return self._resolve(headers, remote, host, tls=tls, forwarded=True)
        return self._resolve_direct(remote, host, tls=tls)

    def _resolve(self, headers: CIMultiDictProxy[str], remote: str, host: str, *, tls: bool, forwarded: bool) -> Peer:
        peer = _address(remote)
        trusted = peer is not None and self._trusts(peer)
        protocols = _members(headers, "X-Forwarded-Proto")
        encrypted = tls or (trusted and _all_https(protocols))
        loopback = peer is not None and peer.is_loopback
        says_https = _all_https(protocols or PROTO.findall(",".join(headers.getall("Forwarded", ()))))
        may_be_local = loopback and self._local_http and (not forwarded or says_https)
        local = may_be_local and self._is_own(host)
        address = self._client(peer, headers) if trusted else str(peer or remote)
        limits_apply = self._limits.enabled and (self._limits.local or forwarded or not local)
        hsts, misnamed = encrypted or self._https, may_be_local and not local and bool(host)
        return Peer(address, encrypted or local, local, forwarded, encrypted, hsts, limits_apply, misnamed)

    def _is_own(self, host: str) -> bool:
        """Return whether a Host header names this machine or service.

        A page of another site can send requests to this machine under a name of its own, which it lets resolve to
        127.0.0.1. Its browser takes the responses for that site's and lets the page read them (DNS rebinding).
        """
        found = HOST.fullmatch(host)
        name = _normalized(found[1] or found[2]) if found else ""
        address = _address(name)
        if address is not None and address.is_loopback:
            return True
        return name in self._hosts or name.rpartition(".")[2] == THIS_MACHINE

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted if network.version == address.version)

    def _client(self, peer: Address | None, headers: CIMultiDictProxy[str]) -> str:
        """Return the client address: the right-most address of X-Forwarded-For that is not a trusted proxy."""
        client = peer
        for part in reversed(_members(headers, "X-Forwarded-For")):
            hop = _hop(part)
            if hop is None:
                break
            client = hop
            if not self._trusts(hop):
                break
        return str(client)


@dataclass(frozen=True, slots=True)
class CrossOrigin:
    """Answers browser code of other origins, by the CORS protocol of the Fetch standard. Cookies never count.

    `origins`: those whose code may read responses of the API, such as `https://app.example`. `paths`: the beginnings of
    those that it may read; pages are for browsers that are on them. `sendable`, `readable`: headers.
    """

    origins: Collection[str]
    paths: tuple[str, ...] = ("/api/", "/mcp")
    sendable: str = (
        f"Authorization, Content-Type, {KEY}, If-None-Match, MCP-Protocol-Version, Mcp-Method, Mcp-Name, {PREFER},"
        " X-Request-Id"
    )
    readable: str = READABLE

    def headers(self, sent: Mapping[str, str], path: str) -> Mapping[str, str]:
        """Return the headers by which a browser lets its code read the response. `path`: without the base path."""
        if not self.origins or not path.startswith(self.paths):
            return {}
        origin = sent.get("Origin")
        if origin is None or origin not in self.origins:
            return VARYING
        return {**VARYING, ALLOW_ORIGIN: origin, "Access-Control-Expose-Headers": self.readable}

    def preflight(
        self, method: str, sent: Mapping[str, str], headers: Mapping[str, str], refused: Failure
    ) -> dict[str, str] | None:
        """Return headers of the response to a preflight from such an origin, or None if the refused request is none.

        `headers`: those that the response has already.
        """
        is_preflight = method == "OPTIONS" and "Access-Control-Request-Method" in sent
        if not (is_preflight and isinstance(refused, MethodNotAllowed) and ALLOW_ORIGIN in headers):
            return None
        return {
            "Access-Control-Allow-Methods": ", ".join(refused.allowed),
            "Access-Control-Allow-Headers": self.sendable,
            "Access-Control-Max-Age": "600",
        }


def served_over_https(server: Server) -> bool:
    """Return whether `server.public_url` begins with https://."""
    return server.public_url is not None and server.public_url.startswith("https://")


def require_https(peer: Peer) -> None:
    """Raise Forbidden unless the request is secure. There is no redirect to HTTPS."""
    if not peer.secure:
        raise Forbidden("This host name is not served." if peer.misnamed else "HTTPS is required.")


def _members(headers: CIMultiDictProxy[str], name: str) -> list[str]:
    """Return the values of a comma-separated header in order, from all header lines with this name."""
    return [part.strip() for line in headers.getall(name, ()) for part in line.split(",")]


def _all_https(protocols: Sequence[str]) -> bool:
    return bool(protocols) and all(protocol.lower() == "https" for protocol in protocols)


def _normalized(host: str) -> str:
    """Return the name or address of a host in lower case, and an address in its usual form."""
    return str(_address(host) or host.lower())


def _hop(text: str) -> Address | None:
    """Parse an address of X-Forwarded-For, with or without a port. Return None if it is invalid."""
    return _address(text.strip("[]")) or _address(text.rpartition(":")[0].strip("[]"))


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
