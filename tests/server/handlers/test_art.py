"""Cover-art previews and avatars: pictures at URLs that cannot be guessed."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from musicsvc.clock import DAY, MovableClock
from musicsvc.config import Server, Settings
from musicsvc.server.shapes import signed_urls
from musicsvc.store.engine.store import Store
from tests.support.serving import Client, person, running

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

BODY = {"template_id": 1, "title": "Вечер 夜 שלום", "artist": "Anna Bon"}


def size_of(png: bytes) -> tuple[int, int]:
    picture = Image.open(io.BytesIO(png))
    assert picture.format == "PNG"
    return picture.size


async def test_a_preview_is_a_picture_that_anybody_with_its_address_can_fetch(client: Client) -> None:
    answer = await client.post("cover-art/preview", BODY)
    assert answer.status == 200
    assert list(answer.json) == ["status", "preview_url"]
    url = answer.json["preview_url"]
    assert url.startswith(f"{client.root}/")
    picture = await client.holding(None).get(url)
    assert (picture.status, picture.headers["Content-Type"]) == (200, "image/png")
    assert size_of(picture.body) == (1000, 1000)
    again = await client.get((await client.post("cover-art/preview", BODY)).json["preview_url"])
    assert again.body == picture.body
    other = await client.get((await client.post("cover-art/preview", BODY | {"title": "Day"})).json["preview_url"])
    assert other.body != picture.body


async def test_another_node_draws_the_same_preview(client: Client, store: Store, clock: MovableClock) -> None:
    url = (await client.post("cover-art/preview", BODY)).json["preview_url"]
    first = await client.get(url)
    async with running(store, clock) as node:
        second = await node.get(url.removeprefix(client.root))
    assert (second.status, second.body) == (200, first.body)


async def test_a_preview_ends_after_24_hours(client: Client, clock: MovableClock) -> None:
    url = (await client.post("cover-art/preview", BODY)).json["preview_url"]
    clock.advance(DAY - 1_000_000)
    assert (await client.get(url)).status == 200
    clock.advance(1_000_000)
    assert (await client.get(url)).status == 404


async def test_an_address_that_was_not_given_out_shows_nothing(client: Client) -> None:
    url = (await client.post("cover-art/preview", BODY)).json["preview_url"]
    root, _, name = url.rpartition("/")
    payload, _, rest = name.partition(".")
    for forged in (
        f"{payload[:-1]}A.{rest}",
        f"{payload}.{'A' * 22}.png",
        f"{payload}.png",
        f"{name}x",
        ".png",
        "%00.png",
    ):
        assert (await client.get(f"{root}/{forged}")).status == 404, forged


async def test_every_template_has_a_thumbnail(client: Client) -> None:
    templates = (await client.get("cover-art/templates")).json["templates"]
    assert [template["id"] for template in templates] == list(range(1, len(templates) + 1))
    assert len(templates) >= 6
    for template in templates:
        assert size_of((await client.holding(None).get(template["thumbnail"])).body) == (250, 250)
    assert (await client.get("/cover-art/templates/99.png")).status == 404


async def test_an_account_has_an_avatar_that_the_service_draws(client: Client) -> None:
    me = (await client.get("users/me")).json["user"]
    picture = await client.holding(None).get(me["avatar"])
    assert (picture.status, size_of(picture.body)) == (200, (256, 256))
    known = await client.get(me["avatar"], headers={"If-None-Match": picture.headers["ETag"]})
    assert known.status == 304
    for unknown in ("/avatars/999999", "/avatars/x", "/avatars/0"):
        assert (await client.get(unknown)).status == 404


async def test_addresses_follow_the_public_url_and_never_the_host_header(store: Store, clock: MovableClock) -> None:
    settings = Settings(server=Server(public_url="https://music.test"))
    async with running(store, clock, settings) as anonymous:
        client = anonymous.holding(person(store, clock, "ann@label.test")[1])
        through_the_proxy = {"Host": "evil.test", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        answer = await client.post("cover-art/preview", BODY, headers=through_the_proxy)
    assert answer.json["preview_url"].startswith("https://music.test/")


@given(st.binary(min_size=32, max_size=32), st.text(max_size=120), st.text(max_size=200))
def test_what_is_signed_comes_back_and_nothing_else_does(key: bytes, value: str, noise: str) -> None:
    value, noise = (text.encode("utf-8", "ignore").decode() for text in (value, noise))
    signed = signed_urls.sign(key, [value])
    assert signed_urls.verify(key, signed) == [value]
    with pytest.raises(ValueError, match=r"not|invalid"):
        signed_urls.verify(key[::-1] + b"x", signed)
    with pytest.raises(ValueError, match=r"not|invalid"):
        signed_urls.verify(key, noise)


def test_an_address_signed_by_an_earlier_version_stays_valid() -> None:
    signed = "eNqLNtRRCkpML1bSUQpOzi8pUfDKL8jJzFPSMTQ3NzI2MzMxMIgFAMMiCiA.euF9LEhC4D6a0Z4Szh76hg"
    assert signed_urls.verify(bytes(range(32)), signed) == [1, "Rags", "Scott Joplin", 1_772_366_400]
