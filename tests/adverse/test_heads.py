"""No head of a request keeps the event loop from answering others, whatever its headers and its target contain."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from musicsvc.clock import MovableClock
from musicsvc.store.engine.store import Store
from tests.support.raw_connection import request
from tests.support.threaded_server import LOOP_SECONDS, TRIES, Connection, threaded_server

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

LONGEST = 8_000  # characters of a line; aiohttp refuses longer ones
END = "x!"
HEADERS = (
    *("Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Content-Encoding"),
    *("Content-Type", "Cookie", "Expect", "Forwarded", "Host", "If-Match", "If-Modified-Since", "If-None-Match"),
    *("If-Range", "Origin", "Prefer", "Range", "Referer", "Sec-Fetch-Site", "TE", "Traceparent", "User-Agent", "Via"),
    *("X-Demo-Fault", "X-Forwarded-For", "X-Forwarded-Proto", "X-Request-Id"),
)
BEGINNINGS = {
    "Authorization": "Bearer ",
    "Content-Type": 'application/json;a="',
    "Cookie": 'musicsvc="',
    "Forwarded": "proto=",
    "Range": "bytes=",
}
PIECES = (" ", '"', '";', ";", ",", "=", ";a=b", '\\"', "a", "9", "(", "%25", "=?u?q?x?= ", "é", ":", ";a*0*=u''b")
TARGETS = ("/api/v1/tracks?query=", "/api/v1/", "/api/v1/tracks?", "/sign-in?next=/", "/api/v1/tracks/1/")
IN_TARGETS = ("a", "%25", "&a=", "&", "%", "/", "+", "%cc%81%cc%96", "=", ".", ";", "%ff")


def heads() -> Iterator[bytes]:
    for name in HEADERS:
        for piece in PIECES:
            value = BEGINNINGS.get(name, "") + piece * (LONGEST // len(piece.encode()))
            yield request("POST", "/api/v1/auth/login", f"{name}: {value}{END}", "Content-Length: 2") + b"{}"
    for target in TARGETS:
        for piece in IN_TARGETS:
            yield request("GET", target + piece * (LONGEST // len(piece)) + END)


@pytest.mark.slow
def test_no_head_costs_more_than_it_may(store: Store, clock: MovableClock) -> None:
    with threaded_server(store, clock) as server:
        for head in heads():
            costs = []
            for number in range(TRIES):
                another = head.replace(END.encode(), b"x%d" % number)  # for what remembers texts
                with closing(Connection(server.port, server.thread)) as connection:
                    costs.append(connection.cost(another).loop)
                if costs[-1] <= LOOP_SECONDS:
                    break
            assert min(costs) <= LOOP_SECONDS, head[:60]
