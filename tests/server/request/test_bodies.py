"""Transfer of bodies: content type, encoding, framing."""

import asyncio
import gzip
import json
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.streams import StreamReader

from musicsvc.server.request import bodies
from tests.support.malformed_requests import ARTISTS
from tests.support.raw_connection import connected, request
from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

SOUND = json.dumps({"name": "Barbara Strozzi"}).encode()


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/vnd.music+json",
        "application/json; version=1",
    ],
)
async def test_json_is_taken_under_its_names(client: Client, kind: str) -> None:
    assert (await client.post("artists", data=SOUND, headers={"Content-Type": kind})).status == 201


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "text/json",
        "application/jsonx",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/octet-stream",
        "*/*",
        "json",
        "",
        ";",
    ],
)
async def test_other_kinds_are_415(client: Client, kind: str) -> None:
    answer = await client.post("artists", data=SOUND, headers={"Content-Type": kind})
    assert (answer.status, answer.json["errors"]) == (415, {})


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", "klingon", "undefined", "idna", "\xff"])
async def test_other_charsets_are_400(client: Client, charset: str) -> None:
    answer = await client.post("artists", data=SOUND, headers={"Content-Type": f"application/json; charset={charset}"})
    assert answer.status == 400


async def test_a_body_without_a_kind_is_415(client: Client) -> None:
    async with connected(client.root) as wire:
        await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {client.token}", body=SOUND))
        assert (await wire.answer()).status == 415


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "nonsense", "identity, gzip"])
async def test_a_coded_body_is_415_sound_or_not(client: Client, coding: str) -> None:
    for body in (gzip.compress(SOUND), b"not gzip", SOUND):
        headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
        assert (await client.post("artists", data=body, headers=headers)).status == 415


async def test_identity_is_no_coding(client: Client) -> None:
    headers = {"Content-Encoding": "Identity", "Content-Type": "application/json"}
    assert (await client.post("artists", data=SOUND, headers=headers)).status == 201


@pytest.mark.parametrize("headers", [[], ["Content-Length: 0"], ["Content-Length: 0", "Content-Type: text/plain"]])
async def test_no_body_is_400_where_a_field_is_required(client: Client, headers: list[str]) -> None:
    async with connected(client.root) as wire:
        await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {client.token}", *headers))
        answer = await wire.answer()
        assert (answer.status, answer.json["message"]) == (400, "A JSON body is required.")


async def test_what_is_no_object_is_422_and_names_the_body(client: Client) -> None:
    for body in (b"[]", b'"x"', b"1", b"true", b"null"):
        answer = await client.post("artists", data=body, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.json["errors"]) == (422, {"body": "Must be a JSON object."})


async def test_unknown_fields_and_ids_of_a_body_are_ignored(client: Client) -> None:
    body = {"name": "Ann", "id": 77, "verified": True, "manager": 1, "albums_count": 9, "nonsense": [{}]}
    artist = (await client.post("artists", body)).json["artist"]
    assert (artist["id"], artist["verified"], artist["albums_count"]) == (1, False, 0)


async def test_a_body_is_read_at_once_if_it_is_there_small_and_of_a_known_length() -> None:
    def arrived(length: int | None, *, whole: bool = True, fault: Exception | None = None) -> bool:
        protocol: Any = SimpleNamespace(_reading_paused=False, resume_reading=lambda **_: None)
        stream = StreamReader(protocol, 2**16, loop=asyncio.get_running_loop())
        if whole:
            stream.feed_eof()
        if fault is not None:
            stream.set_exception(fault)
        request: Any = SimpleNamespace(content=stream, content_length=length)
        return bodies._has_arrived(request)

    assert arrived(bodies.SMALL)
    assert not arrived(bodies.SMALL + 1)
    assert not arrived(None)
    assert not arrived(5, whole=False)
    assert not arrived(5, fault=ConnectionResetError())  # the client is gone: reading says so
