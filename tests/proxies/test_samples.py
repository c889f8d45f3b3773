"""The service behind nginx and Caddy, with the samples of packaging/proxy: TLS, HTTP/2, addresses, sizes, streams."""

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from io import BytesIO
from pathlib import Path

import pytest
import pytest_asyncio

from musicsvc.config import Limits
from musicsvc.server.routes.route import INSIGHTS, V1
from musicsvc.store.accounts import api_access, users
from musicsvc.store.engine import bulk
from musicsvc.store.models import Artist, Track, TrackArtist
from tests.proxies.front import PROXIES, Front, front
from tests.rights.world import OWNER
from tests.support import databases
from tests.support.page_client import add_account, text
from tests.support.shared_server import on_shared_loop

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]
needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
CALLS = 7  # a minute without a token
MIB = 2**20
REFUSED = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
ROWS = 10_000
PIECE = 64 * 1024
ESTABLISHED = "01"  # the state of a connection in /proc/net/tcp


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROXIES)
async def proxied(
    request: pytest.FixtureRequest, template: databases.Template, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Front]:
    """A proxy at the root of a host, and a service behind it that limits clients without a token."""
    limits = Limits(address=f"{CALLS}/minute")
    async with front(request.param, template, tmp_path_factory.mktemp("proxied"), limits=limits) as opened:
        yield opened


async def curl(proxied: Front, *arguments: str) -> tuple[str, str, str]:
    """Return the version of HTTP, the status and the body of a response."""
    command = ("curl", "-sS", "--cacert", str(proxied.folder / "ca.pem"), "-w", "\n%{http_version} %{http_code}")
    done = await asyncio.to_thread(subprocess.run, [*command, *arguments], capture_output=True, text=True, check=True)
    body, _, last = done.stdout.rpartition("\n")
    version, status = last.split()
    return version, status, body


def token(proxied: Front) -> str:
    return str(proxied.shared.world(()).tokens[OWNER])


@on_shared_loop
async def test_clients_that_can_get_http2_over_tls(proxied: Front) -> None:
    port = int(proxied.origin.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        proxied.tls("h2", "http/1.1").wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        assert (encrypted.selected_alpn_protocol(), encrypted.version()) == ("h2", "TLSv1.3")


@needs_curl
@on_shared_loop
async def test_requests_over_http2_are_answered(proxied: Front) -> None:
    assert await curl(proxied, "--http2", f"{proxied.origin}/healthz") == ("2", "200", '{"status":"ok"}')
    holder = ("--http2", "-H", f"Authorization: Bearer {token(proxied)}")
    version, status, body = await curl(proxied, *holder, f"{proxied.origin}{V1}/users/me")
    assert (version, status, f"{proxied.origin}/avatars/" in body) == ("2", "200", True)
    large = proxied.folder / "large"
    large.write_bytes(b" " * (3 * MIB))
    sent = ("-H", "Content-Type: application/json", "-H", "Expect:", "--data-binary", f"@{large}")
    version, status, body = await curl(proxied, *holder, *sent, f"{proxied.origin}{V1}/artists")
    assert (version, status, '"status":"error"' in body) == ("2", "413", True)


def states(port: int) -> list[str]:
    """Return the states of all connections to this port of the machine (Linux)."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("utf-8").splitlines()[1:]]
    return [state for _, _, remote, state, *_ in lines if remote.endswith(f":{port:04X}")]


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not list its connections in /proc")
@on_shared_loop
async def test_connections_to_the_service_stay_open_between_requests(proxied: Front) -> None:
    port = int(proxied.shared.client.root.rpartition(":")[2])
    async with proxied.client(2) as client:
        for _ in range(5):
            assert (await client.get("/healthz")).status == HTTPStatus.OK
    assert states(port).count(ESTABLISHED) > 0


@on_shared_loop
async def test_each_response_has_one_line_of_strict_transport_security(proxied: Front) -> None:
    async with proxied.client(2) as client:
        for path, status in (("/healthz", 200), (f"{V1}/genres", 200), ("/", 200), ("/no/such/page", 404)):
            answer = await client.get(path)
            headers = answer.headers.getall("Strict-Transport-Security")  # type: ignore[attr-defined]
            assert (path, answer.status, headers) == (path, status, ["max-age=31536000"])


@on_shared_loop
async def test_plain_http_leads_browsers_to_https_and_refuses_clients_of_the_api(proxied: Front) -> None:
    async with proxied.client(2, token(proxied)) as client:
        page = await client.get(f"{proxied.plain}/insights?period=7-days")
        assert (page.status, page.headers["Location"]) == (308, f"{proxied.origin}/insights?period=7-days")
        for method in ("GET", "POST"):
            refused = await client(method, f"{proxied.plain}{V1}/albums")
            assert (refused.status, "Location" in refused.headers) == (403, False)
    direct = proxied.shared.client.holding(client.token)  # to the service itself
    past = await direct.get("users/me", headers={"Connection": "close"})
    assert (past.status, past.json["message"]) == (403, "HTTPS is required.")


@on_shared_loop
async def test_each_client_has_a_limit_of_its_own_whatever_it_claims(proxied: Front) -> None:
    claims: Sequence[dict[str, str]] = [
        {},
        *({name: f"192.0.2.{number}"} for number in range(3) for name in ("X-Forwarded-For", "X-Real-IP")),
        {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=192.0.2.1;proto=http", "X-Forwarded-Proto": "http"},
    ]
    async with proxied.client(5) as first, proxied.client(6) as second:
        statuses = [(await first.get("genres", headers=claim)).status for claim in claims]
        assert statuses == [200] * CALLS + [429]
        refused = await first.get("genres")
        assert (refused.status, refused.json["status"]) == (429, "error")
        assert int(refused.headers["Retry-After"]) > 0
        assert (await second.get("genres")).headers["X-RateLimit-Remaining"] == str(CALLS - 1)
    async with proxied.client(5, token(proxied)) as known:
        assert (await known.get("genres")).status == HTTPStatus.OK


@on_shared_loop
async def test_the_service_itself_refuses_bodies_over_one_mebibyte(proxied: Front) -> None:
    async def pieces(size: int) -> AsyncIterator[bytes]:
        for _ in range(size // PIECE):
            yield b" " * PIECE
        yield b"{}" + b" " * (size % PIECE)

    kind = {"Content-Type": "application/json"}
    async with proxied.client(2, token(proxied)) as client:
        for _ in range(3):
            large = await client.post("artists", data=BytesIO(b" " * (MIB - 1) + b"{}"), headers=kind)
            assert (large.status, large.json["status"]) == (REFUSED, "error")
        assert (await client.post("artists", data=pieces(MIB), headers=kind)).status == REFUSED
        fitting = await client.post("artists", data=BytesIO(b" " * (MIB - 2) + b"{}"), headers=kind)
        assert (fitting.status, fitting.json["errors"].keys()) == (422, {"name"})


@on_shared_loop
async def test_a_file_of_32_mebibytes_passes_and_a_larger_one_is_refused_by_the_service(proxied: Front) -> None:
    user = add_account(proxied.shared, f"{proxied.folder.name}@files.test")
    proxied.shared.store.write(lambda: api_access.grant(users.get(user), now=1)).result()
    async with proxied.browser(3) as browser:
        assert (await browser.sign_in(f"{proxied.folder.name}@files.test")).status == HTTPStatus.SEE_OTHER
        large = await browser.post("/import", {"file": ("a.csv", b"x" * (32 * MIB + 1))})
        assert (large.status, "larger than 32 MiB" in text(large)) == (REFUSED, True)
        huge = await browser.post("/import", {"file": ("a.csv", b"x" * (48 * MIB))})
        assert (huge.status, "larger than 32 MiB" in text(huge)) == (REFUSED, True)
        passed = await browser.post("/import", {"file": ("a.csv", b"x" * (32 * MIB))})
        assert (passed.status, passed.headers["Location"].startswith("/import/")) == (303, True)
    assert written(proxied) == []


def written(proxied: Front) -> list[str]:
    """Return the files in which the proxy has stored bodies, and the folders that it leaves behind (nginx)."""
    return [file.name for name in ("bodies", "responses") for file in (proxied.folder / name).glob("**/*")]


def fill(user: int) -> None:
    """Create many tracks with long names."""
    artist = Artist.create(name="Prolific", manager=user, created_at=0).id
    tracks = bulk.ids(Track, ROWS)
    bulk.insert(Track, ("id", "name", "duration", "created_at"), [(each, "n" * 200, 1, 0) for each in tracks])
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(each, artist, 0) for each in tracks])


@on_shared_loop
async def test_a_large_export_is_passed_on_as_the_client_reads_it(proxied: Front) -> None:
    world = proxied.shared.world(())
    proxied.shared.store.write(lambda: fill(world.ids[OWNER])).result()
    sent = {"Authorization": f"Bearer {world.tokens[OWNER]}", "Accept-Encoding": "identity"}
    url, body = f"{proxied.origin}{INSIGHTS}/export/csv", {"type": "tracks", "period": "7-days"}
    async with (
        proxied.session(4, receive_buffer=PIECE) as session,
        session.post(url, json=body, headers=sent) as response,
        proxied.client(5) as other,
    ):
        first = await response.content.readline()
        for _ in range(50):  # the client reads nothing meanwhile
            assert (await other.get("/healthz")).status == HTTPStatus.OK
        rest = await response.read()
        assert len(first) + len(rest) == int(response.headers["Content-Length"])
    assert (response.status, rest.count(b"\n"), written(proxied)) == (200, ROWS, [])
