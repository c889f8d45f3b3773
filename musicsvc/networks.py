"""Addresses of clients, and what one client is given of them."""

import ipaddress

IPV6 = 6
IPV6_PREFIX = 64  # bits; one client has as many addresses within them as it likes


def client_network(address: str) -> str:
    """The address itself, or the /64 of an IPv6 address; text that is not a valid address stays as it is."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, IPV6_PREFIX), strict=False)) if found.version == IPV6 else address
