"""What `doctor` finds about the way in: TLS, settings that open more than they should, room for connections."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from musicsvc.clock import DAY, SECOND, to_date
from musicsvc.errors import Failure
from musicsvc.server.network import tls
from musicsvc.server.process import open_files
from musicsvc.store.doctor.database import failed, ok, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from musicsvc.config import Server, Settings
    from musicsvc.store.doctor.database import Finding

SOON, AT_ONCE = 14 * DAY, 3 * DAY
HOUR = 3_600 * SECOND
RENEW = "Renew it, and restart the server."
WIDEST = {4: 8, 6: 16}  # the shortest prefix that is still a network of somebody's own
FEW_CONNECTIONS = 1_000


def of_tls(server: Server, *, now: int) -> Iterator[Finding]:
    """The certificate's dates and its key."""
    if server.tls_cert is None and server.tls_key is None:
        yield ok("TLS", "The settings name no certificate: TLS is a proxy's, or requests stay on this machine.")
        return
    try:
        tls.create_context(server)
        validities = tls.validities(server.tls_cert) if server.tls_cert else []
    except Failure as failure:
        yield problem("TLS", failure.message, "Set server.tls_cert and server.tls_key to a chain and its key.")
        return
    for number, validity in enumerate(validities, 1):
        yield _of_validity("The certificate" if number == 1 else f"Certificate {number} of the chain", validity, now)


def _of_validity(name: str, validity: tls.Validity, now: int) -> Finding:
    begins, ends = to_date(validity.begins), to_date(validity.ends)
    if validity.ends <= now:
        return problem("TLS", f"{name} expired on {ends}.", RENEW)
    if validity.begins > now:
        return problem("TLS", f"{name} is not valid before {begins}.", "Look at the clock, or renew it.")
    if validity.ends <= now + SOON:
        left = validity.ends - now
        told = f"{left // DAY} days" if left >= 2 * DAY else f"{left / HOUR:.0f} hours"
        return (problem if left < AT_ONCE else warning)("TLS", f"{name} expires in {told}, on {ends}.", RENEW)
    return ok("TLS", f"{name} is valid until {ends}.")


def of_settings(settings: Settings) -> list[Finding]:
    """What is set so that tokens may be seen, or anybody may do what few should."""
    return list(_unsafe(settings)) or [ok("settings", "No setting is unsafe.")]


def _unsafe(settings: Settings) -> Iterator[Finding]:
    server = settings.server
    try:
        tls.require_encryption(server)
    except Failure as failure:
        yield failed("settings", failure)
    if server.public_url is not None and server.public_url.startswith("http://"):
        finding = "server.public_url begins with http://: clients would send tokens in the open."
        yield problem("settings", finding, "Set it to the https:// address.")
    for network in server.trusted_proxies:
        if _is_wide(network):
            finding = f"server.trusted_proxies holds {network}: anybody there can say that a request came over TLS."
            yield problem("settings", finding, "Name the addresses of your proxies alone.")
    if not settings.limits.enabled:
        yield warning("settings", "Limits and abuse handling are off (limits.enabled).", "Turn them on.")
    if settings.hosted:
        yield from _unsafe_when_hosted(settings)


def _unsafe_when_hosted(settings: Settings) -> Iterator[Finding]:
    """What is harmless on a desk alone."""
    if settings.server.local_http:
        finding = "Plain HTTP within the machine is answered on a hosted service (server.local_http)."
        yield warning("settings", finding, "Turn it off, unless a proxy without headers stands before it.")
    if settings.registration.open and settings.registration.grants_access:
        finding = "Everybody who registers gets API access (registration.grants_access)."
        yield warning("settings", finding, "Turn it off, and grant access by hand.")
    for network in settings.metrics.allow:
        if _is_wide(network):
            yield warning("settings", f"metrics.allow holds {network}.", "Name the addresses that collect metrics.")


def _is_wide(network: str) -> bool:
    parsed = ipaddress.ip_network(network, strict=False)
    return not parsed.is_loopback and parsed.prefixlen < WIDEST[parsed.version]


def of_descriptors(settings: Settings) -> Finding:
    """Whether there is room for the connections that the settings allow."""
    open_files.raise_limit()
    room, wanted = open_files.for_connections(), -(-settings.server.max_connections // settings.server.workers)
    if room >= wanted:
        return ok("descriptors", f"A process may hold {wanted:,} connections.")
    finding = f"The system allows a process {room:,} connections, server.max_connections asks for {wanted:,}."
    way_out = "Raise the limit of open files (ulimit -n, LimitNOFILE)."
    return (problem if room < FEW_CONNECTIONS else warning)("descriptors", finding, way_out)
