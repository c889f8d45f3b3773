"""HTTPS served by the program, and plain HTTP refused (docs/proxy.md)."""

import asyncio
import re
import ssl
from pathlib import Path

import pytest
import trustme

from musicsvc.clock import Clock
from musicsvc.config import Server, Settings
from musicsvc.errors import Failure
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.network import tls
from musicsvc.server.network.raw_responses import NOT_ENCRYPTED
from musicsvc.server.network.tls import Configuration
from musicsvc.server.serving import Source
from musicsvc.store.engine.store import Store
from tests.support.malformed_requests import ALBUMS
from tests.support.raw_connection import connected, request
from tests.support.serving import StartServer

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

HOSTED = Server(public_url="https://music.example.test")
HTTPS = {"X-Forwarded-Proto": "https"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "music.example.test"])  # noqa: S104 - refused
def test_another_address_needs_tls_or_a_named_proxy(host: str) -> None:
    with pytest.raises(Failure, match="--tls-cert"):
        tls.require_encryption(Server(host=host))
    tls.require_encryption(Server(host=host, tls_cert=Path("cert.pem")))
    tls.require_encryption(Server(host=host, trusted_proxies=("10.0.0.1",)))


def test_tokens_are_not_sent_over_plain_http_after_a_reload_either(caplog: pytest.LogCaptureFixture) -> None:
    proxied, exposed = (
        Settings(server=Server(host="192.0.2.7", **more)) for more in ({"trusted_proxies": ("10.0.0.1",)}, {})
    )
    with pytest.raises(Failure, match="plain HTTP would expose tokens"):
        Source(exposed, Settings)
    source = Source(proxied, lambda: exposed)
    assert not source.reload()
    assert source.current.settings is proxied
    assert "plain HTTP would expose tokens" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "localhost"])
def test_this_machine_needs_no_tls(host: str) -> None:
    tls.require_encryption(Server(host=host))


def test_absolute_urls_begin_where_the_server_listens_or_as_set() -> None:
    with serving.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert Configuration(Settings(), tls=None).root(listener) == f"http://127.0.0.1:{port}"
        six = Configuration(Settings(server=Server(host="::1", tls_cert="a.pem", tls_key="b.pem")), tls=None)
        assert six.root(listener) == f"https://[::1]:{port}"
        assert Configuration(Settings(server=HOSTED), tls=None).root(listener) == "https://music.example.test"


async def test_ipv6_on_this_machine_is_served(store: Store, clock: Clock) -> None:
    try:
        listener = serving.listen("::1", 0)
    except Failure:
        pytest.skip("this machine has no IPv6")
    app = App(Settings(), store, clock, "http://[::1]")
    await app.start(listener)
    try:
        async with connected(f"http://[::1]:{listener.getsockname()[1]}") as wire:
            await wire.send(request("GET", ALBUMS))
            assert (await wire.answer()).status == 200
    finally:
        await app.stop()


async def test_tls_is_served_on_a_hosted_service(
    store: Store, clock: Clock, authority: trustme.CA, certified: tuple[str, str]
) -> None:
    cert, key = map(Path, certified)
    settings = Settings(server=HOSTED.model_copy(update={"tls_cert": cert, "tls_key": key}))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    listener = serving.listen("127.0.0.1", 0)
    root = f"https://127.0.0.1:{listener.getsockname()[1]}"
    app = App(settings, store, clock, root)
    await app.start(listener, tls.create_context(settings.server))
    try:
        async with connected(root, trusting) as wire:
            for target, status in ((ALBUMS, 200), ("/nothing", 404), ("/api/v1/artists", 200)):
                await wire.send(request("GET", target))
                assert (await wire.answer()).status == status
    finally:
        await asyncio.wait_for(app.stop(), 30)


PLAIN = {
    "a request": request("GET", ALBUMS),
    "a large body": request("POST", ALBUMS, body=b"x" * 50_000),
    "a byte": b"\0",
    "another protocol": b"SSH-2.0-x\r\n",
}


@pytest.mark.parametrize("sent", PLAIN.values(), ids=PLAIN)
async def test_plain_http_to_a_tls_port_is_told_in_one_sentence_and_closed(
    certified: tuple[str, str], authority: trustme.CA, start_server: StartServer, sent: bytes
) -> None:
    cert, key = certified
    client = await start_server(Settings(server=Server.model_validate({"tls_cert": cert, "tls_key": key})))
    async with connected(client.root.replace("https://", "http://")) as wire:
        await wire.send(sent)
        answer = await wire.answer()
        assert (answer.status, answer.headers["Connection"]) == (400, "close")
        assert answer.json == {"status": "error", "message": NOT_ENCRYPTED, "errors": {}}
        assert "Strict-Transport-Security" not in answer.headers
        assert await wire.rest() == b""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with connected(client.root, trusting) as wire:
        await wire.send(request("GET", "/metrics"))
        assert re.search(rb'(?m)^musicsvc_requests_total\{.*status="400"\} 1\.0$', (await wire.answer()).body)


@pytest.mark.parametrize(
    "sent", [b"", b"\x16", b"\x16\x03\x01\x40\x00" + bytes(900)], ids=["nothing", "a byte", "garbage"]
)
async def test_a_client_that_ends_no_handshake_is_left_in_time_without_an_answer(
    certified: tuple[str, str], start_server: StartServer, sent: bytes
) -> None:
    cert, key = certified
    server = {"tls_cert": cert, "tls_key": key, "handshake_timeout": 0.3}
    client = await start_server(Settings(server=Server.model_validate(server)))
    for ends in (False, True):
        async with connected(client.root.replace("https://", "http://")) as wire:
            await wire.send(sent)
            if ends:
                wire.end()
            assert b"HTTP" not in await wire.rest()


def test_faulty_tls_files_are_named(certified: tuple[str, str], tmp_path: Path) -> None:
    cert, key = map(Path, certified)
    junk, missing = tmp_path / "junk.pem", tmp_path / "missing.pem"
    junk.write_text("junk")
    other = trustme.CA().issue_cert("127.0.0.1").private_key_pem
    other.write_to_path(str(tmp_path / "other.pem"))
    for pair, words in (
        ((cert, None), "needs both"),
        ((None, key), "needs both"),
        ((missing, key), f"{missing} cannot be read: No such file"),
        ((cert, missing), f"{missing} cannot be read: No such file"),
        ((cert, tmp_path), f"{tmp_path} cannot be read: Is a directory"),
        ((junk, key), "are not a valid certificate and its key"),
        ((cert, junk), "are not a valid certificate and its key"),
        ((cert, tmp_path / "other.pem"), r"without a passphrase \(key values mismatch\)\."),
    ):
        with pytest.raises(Failure, match=words):
            tls.create_context(Server(tls_cert=pair[0], tls_key=pair[1]))
    assert tls.create_context(Server()) is None
    trusted = tmp_path / "trusted.pem"  # OpenSSL reads it
    trusted.write_text(cert.read_text().replace("CERTIFICATE", "TRUSTED CERTIFICATE"))
    with pytest.raises(Failure, match="not a valid PEM certificate"):
        Configuration.of(Settings(server=Server(tls_cert=trusted, tls_key=key)))
