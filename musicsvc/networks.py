"""Group client addresses: all addresses of an IPv6 /64 network count as one client."""

import ipaddress

IPV6 = 6
IPV6_PREFIX = 64  # bits; providers assign at least a /64 to each client


def client_network(address: str) -> str:
    """Return the /64 network of an IPv6 address. Any other text is returned unchanged."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False)) if found.version == IPV6 else address
