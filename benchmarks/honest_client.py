"""Honest client with fifty requests a second; prints its failures and the times of its answers as JSON.

    honest_client.py PORT TRUSTED SECONDS

A request's time begins when it is due, not when it is sent, so that waiting is included. Most requests use persistent
connections, every fifth a new one.
"""

import asyncio
import json
import ssl
import sys
import time
from contextlib import suppress

PER_SECOND = 50
PATIENCE = 10.0  # seconds for an answer
OWN_CONNECTION = 5
PATHS = (
    "/api/v1/albums?perPage=20",
    "/api/v1/tracks/1",
    "/api/v1/users/me",
    "/api/v1/producer-intelligence/insights/tracks/1",
    "/api/v1/playlists",
)
SERVER_FAULT = 500
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Client:
    """Sends requests to one server, over persistent connections in turn."""

    def __init__(self, port: int, token: str, tls: ssl.SSLContext | None) -> None:
        self._port = port
        self._token = token
        self._tls = tls
        self._free: list[Connection] = []
        self.times: list[float] = []
        self.failures: list[str] = []

    async def ask(self, number: int, due: float) -> None:
        """Send a request and record the time since it was due."""
        try:
            async with asyncio.timeout(PATIENCE):
                status = await self._ask(PATHS[number % len(PATHS)], own=number % OWN_CONNECTION == 0)
        except (OSError, EOFError) as error:
            self.failures.append(repr(error))
            return
        self.times.append(time.perf_counter() - due)
        if status >= SERVER_FAULT:
            self.failures.append(str(status))

    async def _ask(self, path: str, *, own: bool) -> int:
        while self._free and not own:
            kept = self._free.pop(0)
            with suppress(OSError, EOFError):  # the server may have closed it meanwhile
                return await self._exchange(kept, path, own=own)
        return await self._exchange(
            await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls), path, own=own
        )

    async def _exchange(self, connection: Connection, path: str, *, own: bool) -> int:
        reader, writer = connection
        closing = "Connection: close\r\n" if own else ""
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n{closing}\r\n"
        writer.write(head.encode())
        answer = (await reader.readuntil(b"\r\n\r\n")).decode()
        await reader.readexactly(int(answer.partition("Content-Length: ")[2].partition("\r\n")[0]))
        if own:
            writer.close()
        else:
            self._free.append(connection)
        return int(answer.split()[1])


async def main() -> None:
    """Send requests at the rate until the time is over."""
    token = sys.stdin.readline().strip()
    port, trusted, seconds = sys.argv[1:]
    client = Client(int(port), token, None if trusted == "-" else ssl.create_default_context(cafile=trusted))
    began = time.perf_counter()
    asked = []
    for number in range(int(float(seconds) * PER_SECOND)):
        due = began + number / PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asked.append(asyncio.create_task(client.ask(number, due)))
    await asyncio.gather(*asked)
    print(json.dumps({"times": client.times, "failures": client.failures}))


if __name__ == "__main__":
    asyncio.run(main())
