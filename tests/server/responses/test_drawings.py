"""The cache of drawings: its size, the order of eviction, and bodies that are compressed once."""

import zlib
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.clock import MovableClock
from musicsvc.reports.art import avatars
from musicsvc.server.responses.drawer import Drawer
from musicsvc.server.responses.drawings import CAPACITY as CACHE
from musicsvc.server.responses.drawings import Drawings
from musicsvc.server.shapes import envelope
from musicsvc.store.engine.store import Store
from tests.support.raw_connection import connected, request
from tests.support.serving import Answer, Client, person, running

CAPACITY = 100
TEMPLATE = "/cover-art/templates/2.png"
FILES = ("/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css", "/docs", "/api/v1/openapi.json")


def size(pictures: Drawings) -> int:
    return sum(len(kept.drawn.content) for kept in pictures._recent.values())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, CAPACITY + 20), st.booleans()), max_size=60))
def test_memory_is_bounded_and_the_picture_unused_for_longest_goes_first(asked: list[tuple[int, int, bool]]) -> None:
    pictures = Drawings(CAPACITY)
    order: list[tuple[int, bool]] = []
    for name, length, constant in asked:
        key = (name, constant)
        before = pictures.get(key)
        drawn = pictures.draw(key, partial(bytes, length), constant=constant)
        assert before in {None, drawn}
        if constant:
            assert pictures.get(key) is drawn
        elif pictures.get(key) is not None:
            order = [*(other for other in order if other != key), key]
        kept = set(pictures._recent)
        assert kept == set(order[len(order) - len(kept) :])
        assert size(pictures) == pictures.size <= CAPACITY


def test_a_picture_that_fills_the_memory_is_kept_and_a_larger_one_drops_nothing() -> None:
    pictures = Drawings(CAPACITY)
    full = pictures.draw("full", lambda: bytes(CAPACITY))
    assert len(pictures.draw("larger", lambda: bytes(CAPACITY + 1)).content) == CAPACITY + 1
    assert (pictures.get("full"), pictures.get("larger")) == (full, None)


def test_a_picture_that_two_threads_draw_at_once_is_counted_once() -> None:
    pictures = Drawings(CAPACITY)
    pictures.draw("a", lambda: pictures.draw("a", lambda: bytes(30)).content * 2)
    assert (size(pictures), pictures.size) == (60, 60)


async def test_accounts_with_the_same_initials_and_colour_share_their_picture(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [person(store, clock, f"ann{number}@label.test")[0] for number in range(30)]
    designs = {avatars.design(f"ann{user_id - 1}", user_id) for user_id in ids}
    drawn: list[avatars.Design] = []

    def draw(_: Drawer, kind: str, design: avatars.Design) -> bytes:
        drawn.append(design)
        return kind.encode()

    monkeypatch.setattr(Drawer, "draw", draw)
    async with running(store, clock) as anonymous:
        for user_id in [*ids, *ids]:
            assert (await anonymous.get(f"/avatars/{user_id}")).status == 200
    assert len(drawn) == len(set(drawn)) == len(designs) < len(ids)


async def test_a_thumbnail_stays_however_large_the_pictures_after_it(
    store: Store, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = [person(store, clock, f"{name}@label.test")[0] for name in ("ann", "bob")]
    drawn: Counter[str] = Counter()

    def draw(_: Drawer, kind: str, *arguments: object) -> bytes:
        drawn[kind] += 1
        return b"\x89PNG" if arguments == (2,) else bytes(CACHE)

    monkeypatch.setattr(Drawer, "draw", draw)
    ann, bob = (f"/avatars/{each}" for each in accounts)
    async with running(store, clock) as anonymous:
        for path in (TEMPLATE, ann, bob, TEMPLATE, ann):
            assert (await anonymous("HEAD", path)).status == 200
    assert drawn == {"thumbnail": 1, "avatar": 3}  # the first avatar was dropped


async def fetch(client: Client, path: str, *headers: str) -> Answer:
    async with connected(client.root) as wire:
        await wire.send(request("GET", path, *headers))
        return await wire.answer()


async def test_files_are_packed_once(anonymous: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in FILES:
        await anonymous.get(path)

    def pack(content: bytes) -> bytes:
        raise AssertionError(f"{len(content)} bytes packed again")

    monkeypatch.setattr(envelope, "pack", pack)
    monkeypatch.setattr("musicsvc.server.responses.responses.pack", pack)
    for path in FILES:
        plain, packed = await fetch(anonymous, path), await fetch(anonymous, path, "Accept-Encoding: gzip")
        small = len(plain.body) < envelope.MIN_COMPRESSED
        assert packed.headers.get("Content-Encoding") == (None if small else "gzip")
        assert (packed.body if small else zlib.decompress(packed.body, wbits=31)) == plain.body
        tag = plain.headers["ETag"]
        assert packed.headers["ETag"] == (tag if small else f'{tag[:-1]}-gzip"')
        assert (await fetch(anonymous, path, f"If-None-Match: {tag}")).status == 304
        assert plain.headers["Cache-Control"] in {"no-cache", "public, no-cache"}
