"""HTTPS except on this machine: TLS, trusted proxies, forged headers (docs/proxy.md)."""

import json
import tracemalloc
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from musicsvc.config import Server, Settings, load
from musicsvc.errors import Failure, Forbidden
from musicsvc.server.peer import Peer, PeerResolver, require_https
from tests.support.serving import Client

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

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


HOSTED = Server(public_url="https://music.example.test")


def judge(
    remote: str, headers: Mapping[str, str] | list[tuple[str, str]], server: Server | None = None, *, tls: bool = False
) -> Peer:
    """Return the peer of a request under these settings."""
    resolver = PeerResolver(Settings(server=server or Server()))
    sent = CIMultiDict(headers)
    sent.setdefault("Host", "localhost:8080")
    return resolver.resolve(remote, CIMultiDictProxy(sent), tls=tls)


@pytest.mark.parametrize("remote", LOOPBACK)
def test_plain_http_on_this_machine_is_taken(remote: str) -> None:
    peer = judge(remote, {})
    assert (peer.secure, peer.local, peer.forwarded) == (True, True, False)


OWN = [
    "localhost",
    "LocalHost:8080",
    "a.localhost",
    "a.b.localhost:1",
    "localhost:",
    "127.0.0.1",
    "127.0.0.1:80",
    "127.9.9.9:8080",
    "[::1]",
    "[::1]:8080",
    "[0:0:0:0:0:0:0:1]:8080",
    "[::ffff:127.0.0.1]:8080",
]
FOREIGN = [
    "elsewhere.test",
    "elsewhere.test:8080",
    "localhost.elsewhere.test",
    "127.0.0.1.elsewhere.test",
    "notlocalhost",
    "localhost.",
    "192.0.2.7",
    "0.0.0.0:8080",
    "[::]",
    "[2001:db8::7]:80",
    "::1",
    "[",
    "[]",
    "[]:80",
    ":80",
    ",",
    "localhost,localhost",
    "127.0.0.1@elsewhere.test",
    "127.0.0.1%elsewhere.test",
    "[::1%elsewhere.test]",
    "localhost:80:80",
    "localhost:x",
    "127.1",
    "2130706433",
    "",
]
NOT_SERVED, NO_HTTPS = "This host name is not served.", "HTTPS is required."
BOUND = Server(host="music.lan", public_url="http://Music.Example.test:8443", local_http=True)


def refusal(peer: Peer) -> str:
    """Return the message with which requests of this client are refused, or an empty string if they are not."""
    try:
        require_https(peer)
    except Forbidden as failure:
        return failure.message
    return ""


@pytest.mark.parametrize("forwarded", [{}, {"Forwarded": "proto=https"}])
@pytest.mark.parametrize(
    ("host", "server", "own"),
    [
        *((host, None, True) for host in OWN),
        *((host, None, False) for host in FOREIGN),
        *((host, BOUND, True) for host in ("music.lan", "MUSIC.lan:80", "music.example.test", "music.example.test:1")),
        *((host, BOUND, False) for host in ("lan", "example.test", "a.music.lan", "192.0.2.7")),
        *((host, Server(host="192.0.2.7"), host != "192.0.2.8") for host in ("192.0.2.7:80", "192.0.2.8", "[::1]")),
        ("[2001:DB8:0::7]:80", Server(host="2001:db8::7"), True),
    ],
)
def test_a_request_under_a_foreign_name_is_not_from_this_machine(
    host: str, server: Server | None, forwarded: Mapping[str, str], *, own: bool
) -> None:
    peer = judge("127.0.0.1", {"Host": host, **forwarded}, server)
    assert (peer.local, peer.secure, peer.limits_apply) == (own, own, bool(forwarded) or not own)
    assert refusal(peer) == ("" if own else NOT_SERVED if host else NO_HTTPS)
    encrypted = judge("127.0.0.1", {"Host": host}, server, tls=True)
    assert (encrypted.local, encrypted.secure) == (own, True)
    proxied = judge("127.0.0.1", {"Host": host} | HTTPS, server)
    assert (proxied.secure, proxied.encrypted) == (True, True)


def test_no_name_of_a_host_is_kept_that_is_longer_than_names_can_be() -> None:
    resolver = PeerResolver(Settings())
    tracemalloc.start()
    try:
        for number in range(200):
            sent = CIMultiDictProxy(CIMultiDict({"Host": f"{number:08000}"}))
            assert not resolver.resolve("127.0.0.1", sent, tls=False).local
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000


def test_a_request_with_several_hosts_or_none_is_not_from_this_machine() -> None:
    for sent in ([("Host", "localhost"), ("Host", "localhost")], []):
        resolver = PeerResolver(Settings(server=Server()))
        assert not resolver.resolve("127.0.0.1", CIMultiDictProxy(CIMultiDict(sent)), tls=False).secure


@pytest.mark.parametrize("remote", ELSEWHERE)
@given(name=st.sampled_from(NAMES), value=st.sampled_from(["https", "127.0.0.1", "proto=https", "for=127.0.0.1"]))
def test_plain_http_from_elsewhere_is_refused_whatever_it_says(remote: str, name: str, value: str) -> None:
    peer = judge(remote, {name: value})
    assert not peer.secure
    assert refusal(judge(remote, {name: value, "Host": "elsewhere.test"})) == NO_HTTPS
    assert not peer.local
    assert peer.address == judge(remote, {}).address


@pytest.mark.parametrize("name", NAMES)
def test_a_forwarding_header_on_this_machine_must_say_https(name: str) -> None:
    assert not judge("127.0.0.1", {name: "http"}).secure
    assert refusal(judge("127.0.0.1", {name: "http", "Host": "elsewhere.test"})) == NO_HTTPS
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


@pytest.mark.parametrize("proxy", ["nonsense", "10.0.0.0/33", ""])
def test_a_faulty_proxy_address_is_named(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__TRUSTED_PROXIES", json.dumps(["127.0.0.1", proxy]))
    with pytest.raises(Failure, match=r"server\.trusted_proxies\.1.*is not a valid address"):
        load()


async def test_a_rebound_name_reads_nothing_but_the_health_of_the_service(anonymous: Client) -> None:
    own, rebound = ({"Host": f"{name}:8080"} for name in ("localhost", "elsewhere.test"))
    for path in ("albums", "openapi.json", "/metrics", "/sign-in", "/nothing"):
        for _ in range(3):  # the first answers make the server remember the head
            assert (await anonymous.get(path, headers=own)).status == (404 if path == "/nothing" else 200)
            answer = await anonymous.get(path, headers=rebound)
            assert answer.status == 403
            assert NOT_SERVED.encode() in answer.body
            if path == "albums":
                assert answer.json == {"status": "error", "message": NOT_SERVED, "errors": {}}
    for path in ("/healthz", "/readyz"):
        assert (await anonymous.get(path, headers=rebound)).status == 200
