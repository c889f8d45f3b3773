"""Clients that request the largest pages and read nothing; prints the number of started answers by size, as JSON.

    unread_crowd.py PORT TRUSTED SECONDS READERS

READERS: pairs of a token and the path of a list, as JSON. Each requests 100 rows; if that is refused, fewer.
"""

import asyncio
import json
import re
import socket
import sys
from collections import Counter
from contextlib import suppress

SIZES = (100, 21)
SOUND = b"200"
PATIENCE = 30.0  # seconds
PAUSE = 0.5  # before a reader reconnects
LENGTH = re.compile(rb"Content-Length: (\d+)")


async def read_nothing(port: int, token: str, path: str, begun: Counter[str]) -> None:
    """Request pages over and over until cancelled."""
    while True:
        for size in SIZES:
            if await _ask(port, token, f"{path}?perPage={size}", begun):
                break
        await asyncio.sleep(PAUSE)


async def _ask(port: int, token: str, target: str, begun: Counter[str]) -> bool:
    """Return whether the answer began, once the server has disconnected."""
    loop = asyncio.get_running_loop()
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.setblocking(False)  # noqa: FBT003 - the library's signature
        try:
            await loop.sock_connect(line, ("127.0.0.1", port))
            head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
            await loop.sock_sendall(line, head.encode())
            answer = await loop.sock_recv(line, 1024)
            if answer.split(b" ", 2)[1:2] != [SOUND]:
                return False
            size = LENGTH.search(answer)
            begun[f"{int(size[1]) / (1 << 20) if size else 0:.1f} MiB"] += 1
            while not line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):  # noqa: ASYNC110 - the system reports no event
                await asyncio.sleep(0.25)
        except OSError:
            return False
        return True


async def main() -> None:
    """Connect one after the other, and stay for the given time."""
    sys.stdin.readline()  # the token of the honest client
    port, _, seconds, readers = sys.argv[1:]
    begun: Counter[str] = Counter()
    alive = [asyncio.create_task(read_nothing(int(port), token, path, begun)) for token, path in json.loads(readers)]
    await asyncio.sleep(float(seconds))
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):  # a busy machine is slow to build the first page
            while not begun:  # noqa: ASYNC110 - the system reports no event
                await asyncio.sleep(0.1)
    for task in alive:
        task.cancel()
    await asyncio.gather(*alive, return_exceptions=True)
    print(json.dumps(begun))


if __name__ == "__main__":
    asyncio.run(main())
