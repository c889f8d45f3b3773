"""nginx and Caddy with the samples of packaging/proxy, in front of a service in the process of the test."""

import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
import trustme
from aiohttp import AddrInfoType

from musicsvc.config import Limits, Server, Settings
from musicsvc.server import browsers
from tests.support import databases
from tests.support.page_client import PageClient
from tests.support.reserved_port import reserved_port
from tests.support.serving import Client
from tests.support.shared_server import Shared, shared_server
from tests.support.waiting import until

SAMPLES = Path(__file__).resolve().parents[2] / "packaging" / "proxy"
PROXIES = ("nginx", "caddy")
PROXY = "127.0.0.1"  # the address from which it connects to the service; clients have other addresses of this machine
ENDED = 10.0  # seconds for a proxy to end
NGINX = """{user}daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies 1; proxy_temp_path {folder}/responses 1;
    fastcgi_temp_path {folder}/unused; scgi_temp_path {folder}/unused; uwsgi_temp_path {folder}/unused;
    include {sample};
}}
"""
CADDY = """{{
    admin off
    auto_https off
    default_bind 127.0.0.1
    http_port {http}
    https_port {https}
}}
"""


@dataclass
class Front:
    """A proxy and the service behind it.

    `origin`, `plain`: the URLs of the proxy with HTTPS and HTTP. `folder`: its files, with the authority in `ca.pem`.
    """

    shared: Shared
    origin: str
    plain: str
    base: str
    folder: Path

    def tls(self, *protocols: str) -> ssl.SSLContext:
        """Return the context of a client that speaks these protocols and trusts the certificate."""
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        context.set_alpn_protocols(protocols)
        return context

    @asynccontextmanager
    async def session(self, last: int = 1, receive_buffer: int = 0) -> AsyncIterator[aiohttp.ClientSession]:
        """Open an HTTP client with the address 127.0.0.`last`, which trusts the certificate.

        `receive_buffer`: bytes of the system for what has arrived; by default, the system chooses.
        """

        def open_socket(address: AddrInfoType) -> socket.socket:
            opened = socket.socket(*address[:3])
            if receive_buffer:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            return opened

        tls, own = self.tls("http/1.1"), (f"127.0.0.{last}", 0)
        resolver = aiohttp.ThreadedResolver()
        connector = aiohttp.TCPConnector(
            ssl=tls, family=socket.AF_INET, local_addr=own, resolver=resolver, socket_factory=open_socket
        )
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as opened:
            yield opened

    @asynccontextmanager
    async def client(self, last: int = 1, token: str | None = None) -> AsyncIterator[Client]:
        async with self.session(last) as session:
            yield Client(session, self.origin + self.base, token)

    @asynccontextmanager
    async def browser(self, last: int = 1) -> AsyncIterator[PageClient]:
        async with self.session(last) as session:
            opened = PageClient(session, self.origin + self.base)
            opened.cookie = f"{browsers.HOST_ONLY}{browsers.COOKIE}{browsers.mark_of(self.base)}"
            yield opened


class Place(NamedTuple):
    """The files and ports of a proxy."""

    folder: Path
    certificate: Path
    key: Path
    http: int
    https: int
    service: int
    base: str

    def certify(self) -> None:
        """Create the certificate."""
        authority = trustme.CA()
        issued = authority.issue_cert("localhost")
        authority.cert_pem.write_to_path(self.folder / "ca.pem")
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(self.key)

    def sample(self, name: str, **replaced: str) -> str:
        """Return the sample with the host, the files and the ports of the test."""
        text = (SAMPLES / name).read_text("utf-8")
        pairs = {
            "/etc/ssl/music/fullchain.pem": str(self.certificate),
            "/etc/ssl/music/privkey.pem": str(self.key),
            "127.0.0.1:8080": f"127.0.0.1:{self.service}",
            "music.example.org": "localhost",
            **replaced,
        }
        for old, new in pairs.items():
            assert old in text, old
            text = text.replace(old, new)
        return text


def nginx(place: Place) -> list[str]:
    """Write the configuration of nginx; return the arguments of its command."""
    ports = {"80": place.http, "443": place.https}
    # With a small buffer of the system, no response needs many megabytes to fill it.
    listening = {f"listen {port}": f"listen 127.0.0.1:{own} sndbuf=64k" for port, own in ports.items()}
    listening |= {f"listen [::]:{port}": f"listen 127.0.0.2:{own}" for port, own in ports.items()}
    text = place.sample("nginx.conf", **listening, **{"https://$host": f"https://localhost:{place.https}"})
    sample, main = place.folder / "musicsvc.conf", place.folder / "nginx.conf"
    opening = "location {} {{\n        proxy_pass"
    sample.write_text(_below(text, place.base, opening.format("/"), opening.format("/music/")))
    user = "user root; " if os.geteuid() == 0 else ""  # else its worker is somebody who may not enter the folder
    main.write_text(NGINX.format(user=user, folder=place.folder, sample=sample))
    return ["-e", str(place.folder / "log"), "-p", str(place.folder), "-c", str(main)]


def caddy(place: Place) -> list[str]:
    """Write the configuration of Caddy; return the arguments of its command."""
    text = place.sample("Caddyfile", **{"# tls": "tls", "https://{host}": f"https://localhost:{place.https}"})
    file = place.folder / "Caddyfile"
    options = CADDY.format(http=place.http, https=place.https)
    file.write_text(options + _below(text, place.base, "@musicsvc path *", "@musicsvc path /music /music/*"))
    return ["run", "--adapter", "caddyfile", "--config", str(file)]


def _below(text: str, base: str, old: str, new: str) -> str:
    """Return the configuration for the base path, changed as its comment says."""
    assert text.count(old) == 1
    return text.replace(old, new.replace("/music", base)) if base else text


ARGUMENTS: dict[str, Callable[[Place], list[str]]] = {"nginx": nginx, "caddy": caddy}


@asynccontextmanager
async def front(
    proxy: str, template: databases.Template, folder: Path, base: str = "", limits: Limits | None = None
) -> AsyncIterator[Front]:
    """Run the proxy and the service behind it."""
    program = shutil.which(proxy)
    if program is None:
        pytest.skip(f"{proxy} is not on the path (tests/proxies/install)")
    with ExitStack() as stack:
        http, https = (stack.enter_context(reserved_port()) for _ in range(2))
        origin = f"https://localhost:{https}"
        server = Server(public_url=origin, base_path=base, trusted_proxies=(PROXY,))
        settings = Settings(server=server, limits=limits or Limits(enabled=False))
        async with shared_server(template, folder, settings) as shared:
            service = int(shared.client.root.rpartition(":")[2].partition("/")[0])
            place = Place(folder, folder / "chain.pem", folder / "key.pem", http, https, service, base)
            place.certify()
            process = stack.enter_context(_running([program, *ARGUMENTS[proxy](place)], folder))
            await until(lambda: _listens(process, https, folder))
            yield Front(shared, origin, f"http://localhost:{http}", base, folder)


@contextmanager
def _running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the proxy for the block."""
    home = {"HOME": str(folder)}  # Caddy keeps files there
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=home)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(ENDED)


def _listens(process: subprocess.Popen[bytes], port: int, folder: Path) -> bool:
    """Return whether the port accepts connections. Fails if the proxy has ended."""
    assert process.poll() is None, (folder / "out").read_text("utf-8")
    with socket.socket() as tried:
        return tried.connect_ex((PROXY, port)) == 0
