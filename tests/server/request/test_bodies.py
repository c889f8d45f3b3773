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
from tests.support.shared_server import on_shared_loop

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]  # the same over either database

SOUND = json.dumps({"name": "Barbara Strozzi"}).encode()


KINDS = {
    201: (
        *("application/json", "APPLICATION/JSON", "application/json; charset=utf-8"),
        *('application/json;charset="UTF-8"', "application/vnd.music+json", "application/json; version=1"),
    ),
    415: (
        *("text/plain", "text/json", "application/jsonx", "application/x-www-form-urlencoded", "*/*", "json", "", ";"),
        *("multipart/form-data; boundary=x", "application/octet-stream"),
    ),
    400: tuple(f"application/json; charset={name}" for name in ("latin-1", "utf-16", "klingon", "undefined", "\xff")),
}


async def test_json_in_utf8_is_taken_under_its_names_only(member: Client) -> None:
    for status, kinds in KINDS.items():
        for kind in kinds:
            answer = await member.post("artists", data=SOUND, headers={"Content-Type": kind})
            assert answer.status == status, kind
            assert status == 201 or answer.json["errors"] == {}


async def test_a_body_without_a_kind_is_415(member: Client) -> None:
    async with connected(member.root) as wire:
        await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {member.token}", body=SOUND))
        assert (await wire.answer()).status == 415


async def test_a_coded_body_is_415_sound_or_not(member: Client) -> None:
    for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip", "nonsense", "identity, gzip"):
        for body in (gzip.compress(SOUND), b"not gzip", SOUND):
            headers = {"Content-Encoding": coding, "Content-Type": "application/json"}
            assert (await member.post("artists", data=body, headers=headers)).status == 415, coding
    headers = {"Content-Encoding": "Identity", "Content-Type": "application/json"}
    assert (await member.post("artists", data=SOUND, headers=headers)).status == 201


async def test_no_body_is_400_where_a_field_is_required(member: Client) -> None:
    async with connected(member.root) as wire:
        for headers in ([], ["Content-Length: 0"], ["Content-Length: 0", "Content-Type: text/plain"]):
            await wire.send(request("POST", ARTISTS, f"Authorization: Bearer {member.token}", *headers))
            answer = await wire.answer()
            assert (answer.status, answer.json["message"]) == (400, "A JSON body is required.")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"name": "Ann",\n }', "The body is not valid JSON in UTF-8. See line 2, column 2."),
        (b'{"name": "J\xfcrgen"}', "The body is not valid JSON in UTF-8. Byte 12 is not UTF-8."),
        (b'\xef\xbb\xbf{"name": "Ann"}', "The body begins with a byte order mark. Send UTF-8 without one."),
        (b'{"a": [{"name": 1, "b": 2, "name": 1}]}', 'The body repeats the key "name".'),
        (rb'{"\ud800": 1, "\ud800": 1}', r'The body repeats the key "\ud800".'),
    ],
)
async def test_a_body_that_is_not_json_is_400_with_the_place_of_the_fault(
    member: Client, body: bytes, message: str
) -> None:
    answer = await member.post("artists", data=body, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json["message"]) == (400, message)


async def test_what_is_no_object_is_422_and_names_the_body(member: Client) -> None:
    for body in (b"[]", b'"x"', b"1", b"true", b"null"):
        answer = await member.post("artists", data=body, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.json["errors"]) == (422, {"body": "Must be a JSON object."})


async def test_unknown_fields_and_ids_of_a_body_are_ignored(member: Client) -> None:
    body = {"name": "Ann", "id": 77, "verified": True, "manager": 1, "albums_count": 9, "nonsense": [{}]}
    artist = (await member.post("artists", body)).json["artist"]
    assert artist | {"verified": False, "albums_count": 0} == artist
    assert artist["id"] != 77


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
