"""Cover-art previews and avatars: pictures at URLs that cannot be guessed."""

import io
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from musicsvc.clock import DAY
from musicsvc.config import Server, Settings
from musicsvc.server.shapes import signed_urls
from musicsvc.store.models import Artist, Track
from tests.rights import world as make
from tests.rights.world import OWNER
from tests.support.serving import Client, running
from tests.support.shared_server import Shared, on_shared_loop

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
OTHER_ENDS = {  # of 22 characters for 16 bytes: the last one has only two bits that count
    each: [other for other in ALPHABET[number - number % 16 :][:16] if other != each]
    for number, each in enumerate(ALPHABET)
}
BODY = {"template_id": 1, "title": "Вечер 夜 שלום", "artist": "Anna Bon"}


def size_of(png: bytes) -> tuple[int, int]:
    picture = Image.open(io.BytesIO(png))
    assert picture.format == "PNG"
    return picture.size


@on_shared_loop
async def test_a_preview_is_a_picture_that_anybody_with_its_address_can_fetch(member: Client) -> None:
    answer = await member.post("cover-art/preview", BODY)
    assert answer.status == 200
    assert list(answer.json) == ["status", "preview_url"]
    url = answer.json["preview_url"]
    assert url.startswith(f"{member.root}/")
    picture = await member.holding(None).get(url)
    assert (picture.status, picture.headers["Content-Type"]) == (200, "image/png")
    assert size_of(picture.body) == (1000, 1000)
    again = await member.get((await member.post("cover-art/preview", BODY)).json["preview_url"])
    assert again.body == picture.body
    other = await member.get((await member.post("cover-art/preview", BODY | {"title": "Day"})).json["preview_url"])
    assert other.body != picture.body


@on_shared_loop
async def test_another_node_draws_the_same_preview(member: Client, shared: Shared) -> None:
    url = (await member.post("cover-art/preview", BODY)).json["preview_url"]
    first = await member.get(url)
    async with running(shared.store, shared.clock) as node:
        second = await node.get(url.removeprefix(member.root))
    assert (second.status, second.body) == (200, first.body)


@on_shared_loop
async def test_a_preview_ends_after_24_hours(member: Client, shared: Shared) -> None:
    url = (await member.post("cover-art/preview", BODY)).json["preview_url"]
    shared.clock.advance(DAY - 1_000_000)
    assert (await member.get(url)).status == 200
    shared.clock.advance(1_000_000)
    assert (await member.get(url)).status == 404


@on_shared_loop
async def test_an_address_that_was_not_given_out_shows_nothing(member: Client) -> None:
    url = (await member.post("cover-art/preview", BODY)).json["preview_url"]
    root, _, name = url.rpartition("/")
    payload, _, rest = name.partition(".")
    for forged in (
        f"{payload[:-1]}A.{rest}",
        f"{payload}.{'A' * 22}.png",
        f"{payload}.png",
        f"{name}x",
        *(f"{payload}.{rest[:21]}{last}.png" for last in OTHER_ENDS[rest[21]]),
        ".png",
        "%00.png",
    ):
        assert (await member.get(f"{root}/{forged}")).status == 404, forged


@on_shared_loop
async def test_every_template_has_a_thumbnail(member: Client) -> None:
    templates = (await member.get("cover-art/templates")).json["templates"]
    assert [template["id"] for template in templates] == list(range(1, len(templates) + 1))
    assert len(templates) >= 6
    for template in templates:
        assert size_of((await member.holding(None).get(template["thumbnail"])).body) == (250, 250)
    assert (await member.get("/cover-art/templates/99.png")).status == 404


@on_shared_loop
async def test_an_account_has_an_avatar_that_the_service_draws(member: Client) -> None:
    me = (await member.get("users/me")).json["user"]
    picture = await member.holding(None).get(me["avatar"])
    assert (picture.status, size_of(picture.body)) == (200, (256, 256))
    known = await member.get(me["avatar"], headers={"If-None-Match": picture.headers["ETag"]})
    assert known.status == 304
    for unknown in ("/avatars/999999", "/avatars/x", "/avatars/0"):
        assert (await member.get(unknown)).status == 404


@on_shared_loop
async def test_artists_albums_and_tracks_have_thumbnails_that_change_with_their_names(shared: Shared) -> None:
    world, store = shared.world((OWNER,)), shared.store

    def create() -> tuple[int, int]:
        return make.artist(world, OWNER), make.track(world, OWNER)

    artist, track = store.write(create).result()
    for path, rename in (
        (f"/thumbnails/artist/{artist}", Artist.update(name="Zoë Zapp").where(Artist.id == artist)),
        (f"/thumbnails/track/{track}", Track.update(name="Zoë Zapp").where(Track.id == track)),
    ):
        picture = await shared.client.holding(None).get(path)
        assert (picture.status, size_of(picture.body)) == (200, (64, 64))
        store.write(rename.execute).result()
        assert (await shared.client.holding(None).get(path)).body != picture.body
    for unknown in ("/thumbnails/album/999999", "/thumbnails/artist/x", "/thumbnails/track/0"):
        assert (await shared.client.holding(None).get(unknown)).status == 404


@on_shared_loop
async def test_addresses_follow_the_public_url_and_never_the_host_header(shared: Shared) -> None:
    settings = Settings(server=Server(public_url="https://music.test"))
    async with running(shared.store, shared.clock, settings) as anonymous:
        client = anonymous.holding(shared.world(()).tokens[OWNER])
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


@given(st.binary(min_size=32, max_size=32), st.text(max_size=20), st.data())
def test_what_is_signed_has_one_spelling(key: bytes, value: str, data: st.DataObject) -> None:
    signed = signed_urls.sign(key, [value.encode("utf-8", "ignore").decode()])
    payload, _, signature = signed.rpartition(".")
    last = [f"{signed[:-1]}{each}" for each in ALPHABET]
    at = data.draw(st.integers(0, len(signature)))
    added = [f"{payload}.{signature[:at]}{each}{signature[at:]}" for each in (" ", "=", "!", "\n", "é")]
    other = [f"{payload}.{signature.translate(str.maketrans('-_', '+/'))}", f"{signed}=", f"{signed}=="]
    for each in {*last, *added, *other} - {signed}:
        with pytest.raises(ValueError, match="the signature is invalid"):
            signed_urls.verify(key, each)


def test_an_address_signed_by_an_earlier_version_stays_valid() -> None:
    signed = "eNqLNtRRCkpML1bSUQpOzi8pUfDKL8jJzFPSMTQ3NzI2MzMxMIgFAMMiCiA.euF9LEhC4D6a0Z4Szh76hg"
    assert signed_urls.verify(bytes(range(32)), signed) == [1, "Rags", "Scott Joplin", 1_772_366_400]
