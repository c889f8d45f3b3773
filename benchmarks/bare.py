"""The yardstick: aiohttp on uvloop with one route per file, which returns the file's bytes as JSON.

    python benchmarks/bare.py FILE...

The path `/N` returns the N-th file, from 0; a POST to it reads its JSON body first. `/asked` answers any method as the
header `X-Answer` asks for: its status and the size of its body, such as `200 5321`. The port is printed.
"""

import asyncio
import sys
from pathlib import Path

import uvloop
from aiohttp import web

HEADERS = {"Content-Type": "application/json"}


async def serve(bodies: list[bytes]) -> None:
    """Serve the bodies until killed."""
    app = web.Application()

    def add(path: str, body: bytes) -> None:
        async def handle(request: web.Request) -> web.Response:
            if request.body_exists:
                await request.json()
            return web.Response(body=body, headers=HEADERS)

        app.router.add_get(path, handle)
        app.router.add_post(path, handle)

    async def answer_as_asked(request: web.Request) -> web.Response:
        status, size = map(int, request.headers["X-Answer"].split())
        if request.method != "GET":
            await request.read()
        body = sized.get(size) or sized.setdefault(size, bytes(size))
        return web.Response(status=status, body=body, headers=HEADERS)

    for number, body in enumerate(bodies):
        add(f"/{number}", body)
    sized: dict[int, bytes] = {0: b""}
    app.router.add_route("*", "/asked", answer_as_asked)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve([Path(name).read_bytes() for name in sys.argv[1:]]))
