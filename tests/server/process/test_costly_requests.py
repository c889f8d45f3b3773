"""Requests that were made to be costly are refused at once, and others are answered meanwhile."""

from collections.abc import Callable

import pytest

from tests.support.program import Program
from tests.support.raw_connection import connected, request, status

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database
JSON = "Content-Type: application/json"


def strings_without_end(size: int) -> bytes:
    return b'{"email":' + rb"\"" * (size // 3) + b"," * (size // 3 + 1)


async def refused(root: str, attack: bytes) -> int:
    """Send a request of anybody, and return its status. Another client is answered meanwhile."""
    async with connected(root) as attacking, connected(root) as other:
        await attacking.send(attack)
        assert await status(other, "GET", "/healthz") == 200
        return (await attacking.answer()).status


async def test_bodies_in_which_strings_begin_and_do_not_end_are_refused(serve: Callable[..., Program]) -> None:
    root = serve().root
    for path in ("login", "register"):
        for size in (60_000, 2**20 - 16):
            attack = request("POST", f"/api/v1/auth/{path}", JSON, body=strings_without_end(size))
            assert await refused(root, attack) == 400
