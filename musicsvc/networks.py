"""The network of a client address, which counts as one client, and the root URL of the service."""

import ipaddress

from musicsvc.config import Server

IPV6 = 6
IPV6_PREFIX = 64  # bits; providers assign at least a /64 to each client


def client_network(address: str) -> str:
    """Return the /64 network of an IPv6 address, which counts as one client. Other text is returned unchanged."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False)) if found.version == IPV6 else address


def text_prefixes(network: str) -> set[str]:
    """Return the beginnings of the addresses of a network as texts. Empty unless `client_network` returns it."""
    try:
        found = ipaddress.IPv6Network(network)
    except ValueError:
        return set()
    if found.prefixlen != IPV6_PREFIX:
        return set()
    groups = found[0].exploded.split(":")[: IPV6_PREFIX // 16]
    written = ":".join(group.lstrip("0") or "0" for group in groups)
    shortest = str(found[-1]).removesuffix(str(found.hostmask).removeprefix("::"))
    return {f"{written}:", shortest, str(found[0])}


def root_url(server: "Server", port: int | None = None) -> str:
    """Return the service's root URL: `server.public_url`, or else `server.host` and `port`, with the base path.

    `port`: by default, `server.port`.
    """
    if server.public_url is not None:
        return server.public_url.removesuffix(server.base_path) + server.base_path
    return listening_url(server, port)


def listening_url(server: "Server", port: int | None = None) -> str:
    """Return the root URL at which the server listens, whatever its public address is. `port`: as for `root_url`."""
    scheme = "http" if server.tls_cert is None else "https"
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{scheme}://{host}:{server.port if port is None else port}{server.base_path}"
