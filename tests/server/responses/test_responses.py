"""Parts of every answer: headers, ETag, content coding, request id."""

import re
import zlib
from typing import NoReturn

import pytest

from musicsvc.server.request import dispatch
from tests.support.raw_connection import connected, request
from tests.support.serving import Answer, Client
from tests.support.shared_server import on_shared_loop

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]  # the same over either database

ERRORS = {
    401: ("POST", "artists"),
    404: ("GET", "nothing"),
    405: ("DELETE", "albums"),
    422: ("GET", "albums?page=0"),
}


async def fill(member: Client) -> None:
    """Create enough artists for an answer that is compressed."""
    for number in range(12):
        body = {"name": f"Artist {number}", "image_small": f"https://img.test/{'x' * 100}"}
        assert (await member.post("artists", body)).status == 201


async def get(member: Client, path: str, **headers: str) -> Answer:
    return await member.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})


async def test_every_answer_has_the_headers_that_all_have(member: Client) -> None:
    for method, path in (
        ("GET", "albums"),
        ("GET", "/healthz"),
        ("GET", "/nothing"),
        ("POST", "artists"),
        ("BIND", "albums"),
        ("HEAD", "albums"),
    ):
        answer = await member(method, path)
        assert answer.headers["Server"] == "musicsvc"
        assert re.fullmatch(r"[0-9a-f]{24}", answer.headers["X-Request-Id"])
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


async def test_a_sane_request_id_is_taken_over(member: Client) -> None:
    for given in ("abc", "0190-a.b_c~d", "x" * 128):
        for path in ("albums", "/nothing"):
            assert (await get(member, path, X_Request_Id=given)).headers["X-Request-Id"] == given


async def test_another_request_id_is_replaced(member: Client) -> None:
    for given in ("", "a b", "x" * 129, "é", "a,b", "<script>", '"'):
        answer = await get(member, "albums", X_Request_Id=given)
        assert re.fullmatch(r"[0-9a-f]{24}", answer.headers["X-Request-Id"]), given


async def test_an_unchanged_answer_is_304_without_a_body(member: Client) -> None:
    await fill(member)
    first = await member.get("artists")
    tag = first.headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f]{32}(-gzip)?"', tag)
    for given in (tag, f"W/{tag}", f'"other", {tag}', f'"other",W/{tag} , "more"', "*"):
        again = await get(member, "artists", If_None_Match=given)
        assert (again.status, again.body) == (304, b""), given
        for name in ("ETag", "Cache-Control", "Vary"):
            assert again.headers[name] == first.headers[name]
        assert "Content-Type" not in again.headers
    for given in ("", '"other"', tag.strip('"'), f"w/{tag}", tag[:-2] + '"'):
        assert (await get(member, "artists", If_None_Match=given)).status == 200, given


async def test_a_change_changes_the_tag(member: Client) -> None:
    before = (await member.get("artists")).headers["ETag"]
    await member.post("artists", {"name": "Ann"})
    answer = await get(member, "artists", If_None_Match=before)
    assert answer.status == 200
    assert answer.headers["ETag"] != before


async def test_the_tag_is_of_what_is_sent_whenever_and_to_whomever(member: Client) -> None:
    """Equal bytes have equal tags; the tiers differ, and so do their tags."""
    await fill(member)
    mine = [await member.get("artists") for _ in range(2)]
    assert mine[0].headers["ETag"] == mine[1].headers["ETag"]
    assert (await member.holding(None).get("artists")).headers["ETag"] != mine[0].headers["ETag"]


async def test_each_tier_says_who_may_keep_its_answers(member: Client) -> None:
    mine, everybodys = await member.get("albums"), await member.holding(None).get("albums")
    assert mine.headers["Cache-Control"] == "private, no-cache"
    assert everybodys.headers["Cache-Control"] == "public, no-cache"
    assert mine.headers["Vary"] == everybodys.headers["Vary"] == "Authorization, Accept-Encoding"


async def test_errors_and_writes_are_not_kept(member: Client) -> None:
    for status, (method, path) in ERRORS.items():
        answer = await member.holding(None)(method, path)
        assert (answer.status, answer.headers["Cache-Control"]) == (status, "no-store")
        assert "ETag" not in answer.headers
    made = await member.post("artists", {"name": "Ann"}, headers={"If-None-Match": "*"})
    assert (made.status, made.headers["Cache-Control"]) == (201, "no-store")
    assert "ETag" not in made.headers


async def test_an_error_is_never_304(member: Client) -> None:
    assert (await get(member, "albums?page=0", If_None_Match="*")).status == 422
    assert (await get(member, "nothing", If_None_Match="*")).status == 404


CODINGS = {
    True: ("gzip", "GZIP", "br, gzip;q=0.5", "*", "*;q=0, gzip", "gzip ; q=1.0"),
    False: ("", "identity", "gzip;q=0", "gzip;q=0.000", "*, gzip;q=0", "gzip;q=nonsense", "deflate, br", "gzipped"),
}


async def test_gzip_is_sent_to_those_who_take_it(member: Client) -> None:
    await fill(member)
    whole = await raw(member, "identity")
    tag = whole.headers["ETag"]
    for coded, accepted in [(coded, accepted) for coded, each in CODINGS.items() for accepted in each]:
        answer = await raw(member, accepted)
        assert (answer.headers.get("Content-Encoding") == "gzip") is coded, accepted
        assert (zlib.decompress(answer.body, wbits=31) if coded else answer.body) == whole.body
        assert answer.headers["ETag"] == (f'{tag[:-1]}-gzip"' if coded else tag)


async def raw(member: Client, accepted: str, noun: str = "artists") -> Answer:
    """Return a list as sent on the wire."""
    async with connected(member.root) as wire:
        lines = (f"Authorization: Bearer {member.token}", f"Accept-Encoding: {accepted}")
        await wire.send(request("GET", f"/api/v1/{noun}", *lines))
        return await wire.answer()


async def test_a_tag_of_one_coding_does_not_spare_the_other(member: Client) -> None:
    await fill(member)
    plain = await raw(member, "identity")
    answer = await get(member, "artists", If_None_Match=plain.headers["ETag"], Accept_Encoding="gzip")
    assert answer.status == 200


async def test_small_answers_are_not_compressed(member: Client) -> None:
    answer = await raw(member, "gzip", "genres")
    assert "Content-Encoding" not in answer.headers


async def test_an_answer_that_cannot_be_made_is_a_500_and_the_log_says_why(
    member: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> NoReturn:
        raise RuntimeError("no answer")

    monkeypatch.setattr(dispatch, "build_response", fail)

    answer = await member.get("albums")

    assert (answer.status, answer.json["status"], answer.headers["Connection"]) == (500, "error", "close")
    assert "no answer" not in answer.body.decode()
    (line,) = [record for record in caplog.records if record.name.startswith("musicsvc")]
    assert line.levelname == "ERROR"
    assert line.exc_info
    assert str(line.exc_info[1]) == "no answer"
