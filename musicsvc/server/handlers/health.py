"""Health checks without a token, and metrics for this machine and the allowed networks."""

import ipaddress
from collections.abc import Callable

from musicsvc.config import Settings
from musicsvc.errors import NotFound, Unavailable
from musicsvc.server.peer import Peer
from musicsvc.server.shapes.envelope import JSON, Download
from musicsvc.store.engine.store import CLOSING
from musicsvc.store.schema import schema

TEXT = "text/plain; version=0.0.4; charset=utf-8"


def alive() -> JSON:
    """Check that the process answers."""
    return {"status": "ok"}


def ready(is_stopping: Callable[[], bool]) -> JSON:
    """Check that the server goes on, and the database is available and has a schema that this version can use.

    Raises Unavailable if not.
    """
    if is_stopping():
        raise Unavailable(here=CLOSING)
    if problem := schema.fault():
        raise Unavailable(here=problem)
    return {"status": "ready"}


def expose_metrics(peer: Peer, settings: Settings, read_metrics: Callable[[], bytes]) -> Download:
    """Return the metrics in Prometheus format. Raises NotFound for clients that are not allowed."""
    if not _is_allowed(peer, settings):
        raise NotFound
    return Download(read_metrics(), TEXT, {"Cache-Control": "no-store"})


def _is_allowed(peer: Peer, settings: Settings) -> bool:
    try:
        address = ipaddress.ip_address(peer.address)
    except ValueError:
        return False
    if address.is_loopback and not peer.forwarded:
        return True
    networks = [ipaddress.ip_network(name, strict=False) for name in settings.metrics.allow]
    return any(address in network for network in networks)
