"""Sending a spooled answer: in pieces, read off the loop, each with a deadline, so that a slow client holds little."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp.web import StreamResponse

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest
    from multidict import CIMultiDict

    from musicsvc.server.shapes.spooled import Spooled

PIECE = 64 * 1024
WRITE_SECONDS = 30.0  # for each piece


async def send(request: BaseRequest, spooled: Spooled, status: int, headers: CIMultiDict[str]) -> StreamResponse:
    """Send the file and close it; a client that takes no piece in time is cut off."""
    response = StreamResponse(status=status, headers=headers)
    response.content_length = spooled.length
    try:
        with suppress(ConnectionError):
            await _send(request, spooled, response)
    except TimeoutError:
        response.force_close()
        if request.transport is not None:
            request.transport.abort()
    finally:
        spooled.file.close()
    return response


async def _send(request: BaseRequest, spooled: Spooled, response: StreamResponse) -> None:
    await response.prepare(request)
    while piece := await asyncio.to_thread(spooled.file.read, PIECE):
        async with asyncio.timeout(WRITE_SECONDS):
            await response.write(piece)
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write_eof()
