"""The root URL of the service."""

from pathlib import Path

import pytest

from musicsvc.config import Server
from musicsvc.networks import root_url

KEYS = {"tls_cert": Path("chain.pem"), "tls_key": Path("key.pem")}


@pytest.mark.parametrize(
    ("server", "port", "url"),
    [
        (Server(), None, "http://127.0.0.1:8080"),
        (Server(port=0), 4711, "http://127.0.0.1:4711"),
        (Server(host="::1", port=81), None, "http://[::1]:81"),
        (Server(host="192.0.2.7", **KEYS), None, "https://192.0.2.7:8080"),
        (Server(public_url="https://music.example.test/", host="::1", **KEYS), 4711, "https://music.example.test"),
        (Server(base_path="/a/b"), 81, "http://127.0.0.1:81/a/b"),
        (Server(public_url="https://music.example.test", base_path="/a/b"), 81, "https://music.example.test/a/b"),
        (Server(public_url="https://music.example.test/a/b/", base_path="/a/b"), 81, "https://music.example.test/a/b"),
        (Server(public_url="https://Music.Example.test:443/A", base_path="/A"), 81, "https://music.example.test/A"),
        (Server(public_url="http://MÜSIK.test:0443"), 81, "http://xn--msik-0ra.test:443"),
    ],
)
def test_the_root_is_the_public_url_or_host_and_port(server: Server, port: int | None, url: str) -> None:
    assert root_url(server, port) == url
