"""HTTPS except on this machine: TLS, trusted proxies, forged headers (docs/operating.md, HTTPS)."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from musicsvc.config import Server, Settings, load
from musicsvc.errors import Failure
from musicsvc.server import serving
from musicsvc.server.app import App
from musicsvc.server.network import tls
from musicsvc.server.peer import Peer, PeerResolver
from musicsvc.server.reloading import Configuration, Source
from tests.support.malformed_requests import ALBUMS
from tests.support.raw_connection import connected, request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from musicsvc.clock import Clock
    from musicsvc.store.engine.store import Store
    from tests.support.serving import StartServer

ADDRESSES = st.ip_addresses().map(str)
ELSEWHERE = ["192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7", "10.0.0.1", "fe80::1%eth0", ""]
LOOPBACK = ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]
NAMES = [
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Real-IP",
    "Via",
]
HTTPS = {"X-Forwarded-Proto": "https"}
PLAIN_ERROR = {"status": "error", "message": "HTTPS is required.", "errors": {}}


HOSTED = Server(public_url="https://music.example.test")


def judge(
    remote: str, headers: Mapping[str, str] | list[tuple[str, str]], server: Server | None = None, *, tls: bool = False
) -> Peer:
    """Return the peer of a request under these settings."""
    resolver = PeerResolver(Settings(server=server or Server()))
    return resolver.resolve(remote, CIMultiDictProxy(CIMultiDict(headers)), tls=tls)


@pytest.mark.parametrize("remote", LOOPBACK)
def test_plain_http_on_this_machine_is_taken(remote: str) -> None:
    peer = judge(remote, {"Host": "elsewhere.test"})
    assert (peer.secure, peer.local, peer.forwarded) == (True, True, False)


@pytest.mark.parametrize("remote", ELSEWHERE)
@given(name=st.sampled_from(NAMES), value=st.sampled_from(["https", "127.0.0.1", "proto=https", "for=127.0.0.1"]))
def test_plain_http_from_elsewhere_is_refused_whatever_it_says(remote: str, name: str, value: str) -> None:
    peer = judge(remote, {name: value})
    assert not peer.secure
    assert not peer.local
    assert peer.address == judge(remote, {}).address


@pytest.mark.parametrize("name", NAMES)
def test_a_forwarding_header_on_this_machine_must_say_https(name: str) -> None:
    assert not judge("127.0.0.1", {name: "http"}).secure
    assert judge("127.0.0.1", {name: "1.1 proxy"} | HTTPS).secure


@pytest.mark.parametrize(
    ("headers", "secure"),
    [
        ([("X-Forwarded-Proto", "HTTPS")], True),
        ([("X-Forwarded-Proto", "https, https")], True),
        ([("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "https")], True),
        ([("X-Forwarded-Proto", "https, http")], False),
        ([("X-Forwarded-Proto", "http, https")], False),
        ([("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")], False),
        ([("X-Forwarded-Proto", "https,")], False),
        ([("X-Forwarded-Proto", "")], False),
        ([("X-Forwarded-Proto", "httpsx")], False),
        ([("Forwarded", "for=192.0.2.7;proto=https;by=127.0.0.1")], True),
        ([("Forwarded", 'for="[2001:db8::7]"; Proto="https"')], True),
        ([("Forwarded", "proto=https, proto=http")], False),
        ([("Forwarded", "for=proto=https")], False),
        ([("Forwarded", "proto=https"), ("X-Forwarded-Proto", "http")], False),
    ],
)
def test_every_proxy_on_the_way_must_say_https(headers: list[tuple[str, str]], *, secure: bool) -> None:
    assert judge("127.0.0.1", headers).secure is secure


def test_only_a_trusted_proxy_is_believed() -> None:
    trusted = Server(trusted_proxies=("10.0.0.0/8", "2001:db8::/32"))
    for remote in ("10.1.2.3", "2001:db8::1", "::ffff:10.1.2.3"):
        assert judge(remote, HTTPS, trusted).secure
        assert not judge(remote, {}, trusted).secure
        assert not judge(remote, HTTPS, trusted).local
    assert not judge("11.0.0.1", HTTPS, trusted).secure


def test_a_public_url_ends_the_exception_for_this_machine() -> None:
    assert not judge("127.0.0.1", {}, HOSTED).secure
    behind_proxy = judge("127.0.0.1", HTTPS, HOSTED)
    assert (behind_proxy.secure, behind_proxy.local) == (True, False)
    kept = HOSTED.model_copy(update={"local_http": True})
    assert judge("127.0.0.1", {}, kept).local
    assert not judge("192.0.2.7", {}, kept).secure


def test_a_forged_header_on_this_machine_is_not_believed_where_it_is_no_proxy() -> None:
    assert not judge("127.0.0.1", HTTPS, HOSTED.model_copy(update={"trusted_proxies": ("10.0.0.1",)})).secure


@pytest.mark.parametrize("remote", [*ELSEWHERE, *LOOPBACK])
def test_tls_is_secure_from_anywhere(remote: str) -> None:
    assert judge(remote, {}, HOSTED, tls=True).secure


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("203.0.113.9, 192.0.2.7", "192.0.2.7"),
        ("203.0.113.9, 192.0.2.7, 127.0.0.2", "192.0.2.7"),
        ("127.0.0.2", "127.0.0.2"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, unknown", "127.0.0.1"),
        ("192.0.2.7, unknown, 127.0.0.3", "127.0.0.3"),
        ("_hidden", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
)
def test_the_client_is_the_right_most_address_that_is_no_trusted_proxy(chain: str, client: str) -> None:
    assert judge("127.0.0.1", {"X-Forwarded-For": chain} | HTTPS).address == client


@given(forged=st.lists(ADDRESSES, max_size=4), client=ADDRESSES, lines=st.booleans())
def test_what_a_client_writes_into_the_chain_never_counts(forged: list[str], client: str, *, lines: bool) -> None:
    """The proxy appends its peer; everything before it came from the client."""
    chain = [("X-Forwarded-For", part) for part in (*forged, client)]
    headers = chain if lines else [("X-Forwarded-For", ", ".join(part for _, part in chain))]
    server = Server(trusted_proxies=("10.0.0.1",))
    alone = judge("10.0.0.1", {"X-Forwarded-For": client}, server).address
    trusted = client in {"10.0.0.1", "::ffff:10.0.0.1"}
    assert judge("10.0.0.1", headers, server).address == alone or trusted


@given(
    remote=ADDRESSES,
    headers=st.lists(st.tuples(st.sampled_from(NAMES), st.text(st.characters(codec="latin-1"), max_size=40))),
)
def test_no_header_breaks_the_judgement(remote: str, headers: list[tuple[str, str]]) -> None:
    peer = judge(remote, headers)
    assert peer.address
    assert peer.secure == peer.local  # by default only this machine is trusted


async def test_plain_http_is_refused_before_anything_else_and_never_redirected(start_server: StartServer) -> None:
    client = await start_server(Settings(server=HOSTED))
    for method, path in (("GET", ALBUMS), ("GET", "/nothing"), ("DELETE", ALBUMS), ("POST", "/api/v1/artists")):
        answer = await client(method, path)
        assert (answer.status, answer.json) == (403, PLAIN_ERROR)
        assert "Location" not in answer.headers
    for path in ("/healthz", "/readyz"):
        assert (await client.get(path)).status == 200
    assert (await client.get("albums", headers=HTTPS)).status == 200


async def test_plain_http_to_insights_is_refused_in_their_own_body(start_server: StartServer) -> None:
    client = await start_server(Settings(server=HOSTED))
    answer = await client.get("producer-intelligence/insights/tracks/1")
    assert answer.status == 403
    assert answer.json == {"success": False, "message": "HTTPS is required.", "error": "forbidden"}


async def test_bytes_that_are_no_http_come_before_the_question_of_https(start_server: StartServer) -> None:
    client = await start_server(Settings(server=HOSTED))
    async with connected(client.root) as wire:
        await wire.send(b"GET /nothing HTTP/9.9\r\n\r\n")
        assert (await wire.answer()).status == 400


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "music.example.test", ""])  # noqa: S104 - refused
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
    assert not source.reload(announce=True)
    assert source.current.settings is proxied
    assert "plain HTTP would expose tokens" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "localhost"])
def test_this_machine_needs_no_tls(host: str) -> None:
    tls.require_encryption(Server(host=host))


@pytest.mark.parametrize("proxy", ["nonsense", "10.0.0.0/33", ""])
def test_a_faulty_proxy_address_is_named(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__TRUSTED_PROXIES", json.dumps(["127.0.0.1", proxy]))
    with pytest.raises(Failure, match=r"server\.trusted_proxies\.1.*is not a valid address"):
        load()


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


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> tuple[Path, Path]:
    """Create a certificate for this machine; return its file and that of its key."""
    issued = authority.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(str(cert))
    issued.private_key_pem.write_to_path(str(key))
    return cert, key


async def test_tls_is_served_on_a_hosted_service(
    store: Store, clock: Clock, authority: trustme.CA, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
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
        async with connected(root) as wire:  # plain HTTP to a TLS port gets no answer
            await wire.send(request("GET", ALBUMS))
            assert b"HTTP" not in await wire.rest()
    finally:
        await asyncio.wait_for(app.stop(), 30)


def test_faulty_tls_files_are_named(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
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
        ((cert, tmp_path / "other.pem"), "are not a valid certificate and its key"),
    ):
        with pytest.raises(Failure, match=words):
            tls.create_context(Server(tls_cert=pair[0], tls_key=pair[1]))
    assert tls.create_context(Server()) is None
