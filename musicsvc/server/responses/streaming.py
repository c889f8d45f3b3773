"""Sends long responses in pieces, as fast as the client reads them, so that a slow client needs little memory."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from aiohttp.web import BaseRequest, StreamResponse
from multidict import CIMultiDict

from musicsvc.server.shapes.spooled import Spooled

PIECE = 64 * 1024


async def send_file(request: BaseRequest, spooled: Spooled, status: int, headers: CIMultiDict[str]) -> StreamResponse:
    """Send the file and close it. The file is read off the event loop."""
    response = _response(status, headers, spooled.length)
    with spooled.file, suppress(ConnectionError):
        await response.prepare(request)
        while piece := await asyncio.to_thread(spooled.file.read, PIECE):
            await response.write(piece)
        await response.write_eof()
    return response


async def send_bytes(
    request: BaseRequest, body: Sequence[bytes], status: int, headers: CIMultiDict[str]
) -> StreamResponse:
    """Send a long body in pieces, without joining the parts of `body`."""
    response = _response(status, headers, sum(map(len, body)))
    with suppress(ConnectionError):
        await response.prepare(request)
        for part in body:
            for at in range(0, len(part), PIECE):
                await response.write(part[at : at + PIECE])
        await response.write_eof()
    return response


def _response(status: int, headers: CIMultiDict[str], length: int) -> StreamResponse:
    response = StreamResponse(status=status, headers=headers)
    response.content_length = length
    return response
