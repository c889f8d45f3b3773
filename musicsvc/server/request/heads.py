"""Credentials and socket address of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import hdrs

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest


def credentials(request: BaseRequest) -> str | None:
    """Return the Authorization header, None without one. Several are joined, so that they match no token."""
    lines = request.headers.getall(hdrs.AUTHORIZATION, None)
    return None if lines is None else ",".join(lines)


def remote_address(request: BaseRequest) -> str:
    """Return the address at the other end of the connection, empty once it is closed."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return str(peer[0]) if isinstance(peer, tuple) else ""
