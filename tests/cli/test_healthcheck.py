"""`musicsvc healthcheck` asks the server that runs, else the one that the settings describe."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from tests.cli.conftest import Run
from tests.support.command import run_in_process
from tests.support.program import Program, run, until
from tests.support.reserved_port import reserved_port

pytestmark = pytest.mark.only_on("sqlite")
Serve = Callable[..., str]
NOT_FOUND = ". No running server was found; this is the address of the settings."


@pytest.fixture
def serve(bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that starts a server with these settings of the section `server`, and returns its port."""
    bare("init")
    with ExitStack() as stack:

        def start(*options: str, **settings: str) -> str:
            port = str(stack.enter_context(reserved_port()))
            for name, value in {"port": port, **settings}.items():
                monkeypatch.setenv(f"MUSICSVC_SERVER__{name.upper()}", value)
            stack.enter_context(Program(tmp_path, "serve", *options))
            until(lambda: run_in_process(["healthcheck", "--timeout", "30s"]).returncode == 0)
            return port

        yield start


@pytest.fixture
def certified(tmp_path: Path) -> dict[str, str]:
    """Return the settings of TLS with a certificate for another name, of an authority that nobody trusts."""
    issued = trustme.CA().issue_cert("music.example")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    return {"tls_cert": str(cert), "tls_key": str(key)}


@pytest.mark.parametrize(
    ("host", "asked"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")],  # noqa: S104 - a test
)
def test_a_server_is_asked_at_its_own_address_or_on_loopback(serve: Serve, bare: Run, host: str, asked: str) -> None:
    port = serve(host=host, trusted_proxies='["10.0.0.0/8"]')
    for options, path in (((), "/healthz"), (("--ready",), "/readyz")):
        done = bare("healthcheck", *options)
        assert done.stderr.startswith(f"http://{asked}:{port}{path}: ok (")
        assert (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_any_certificate_is_accepted_and_a_public_url_does_not_matter(
    serve: Serve, bare: Run, certified: dict[str, str]
) -> None:
    port = serve(**certified, public_url="https://music.example")
    done = bare("healthcheck", "--json")
    found = json.loads(done.stdout)
    assert found.pop("milliseconds") >= 0
    assert found == {"url": f"https://127.0.0.1:{port}/healthz", "ok": True, "status": 200, "message": None}
    assert bare("healthcheck", "--url", f"https://localhost:{port}/", "-q").stderr == ""
    told = f"http://127.0.0.1:{port}/healthz: 400 This port expects HTTPS"
    assert told in bare("healthcheck", "--url", f"http://127.0.0.1:{port}", expect=1).stderr


def test_the_server_that_runs_is_found_whatever_its_options_are(
    serve: Serve, bare: Run, certified: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--port", "0", "--host", "::1", "--tls-cert", certified["tls_cert"], "--tls-key", certified["tls_key"])
    port = serve(*options, base_path="/music", public_url="https://music.example/music")
    (file,) = (tmp_path / "folder").glob("musicsvc.db.served-*")
    assert (found := file.name.rpartition("-")[2]) != port
    assert bare("healthcheck", "--ready").stderr.startswith(f"https://[::1]:{found}/music/readyz: ok")
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "other"))
    assert f"http://127.0.0.1:{port}/music/healthz: no response" in bare("healthcheck", expect=1).stderr


def test_settings_are_those_of_the_named_file(
    serve: Serve, bare: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = serve()
    file = tmp_path / "other.toml"
    file.write_text(f"[server]\nport = {port}\n")
    monkeypatch.delenv("MUSICSVC_SERVER__PORT")
    assert bare("healthcheck", "--config", str(file)).stderr.startswith(f"http://127.0.0.1:{port}/healthz: ok")
    monkeypatch.setenv("MUSICSVC_DEMO_PASSWORD", "three romances")  # of a container that serves the demo
    assert bare("healthcheck", "--config", str(file), "--ready").returncode == 0


def test_a_database_that_is_missing_is_no_matter_for_healthz_but_for_readyz(
    serve: Serve, bare: Run, tmp_path: Path
) -> None:
    port = serve()
    (tmp_path / "folder" / "musicsvc.db").rename(tmp_path / "away")
    bare("healthcheck")
    url = f"http://127.0.0.1:{port}/readyz"
    assert bare("healthcheck", "--ready", expect=1).stderr == f"Error: {url}: 503 unavailable\n"
    done = run_in_process(["healthcheck", "--ready", "--json"])
    assert done.returncode == 1
    assert (json.loads(done.stdout)["ok"], json.loads(done.stdout)["status"]) == (False, 503)


def test_a_server_that_does_not_respond_fails_in_time(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("MUSICSVC_SERVER__PORT", str(silent.getsockname()[1]))
        said = bare("healthcheck", "--timeout", "0.2s", expect=1).stderr
        assert said.endswith(f"/healthz: no response in time{NOT_FOUND}\n")
    said = bare("healthcheck", expect=1).stderr
    assert said.endswith(f"/healthz: no response (Connection refused){NOT_FOUND}\n")


def test_the_address_must_be_known_and_valid(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_SERVER__PORT", "0")
    assert bare("healthcheck", expect=1).stderr == (
        "Error: No running server was found, and server.port is 0, which is any free port. Name it with --url.\n"
    )
    wrong = ("127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://a:b", "http://[::1", "http://a:0", "http://a@b")
    for url in (*wrong, "http://a?b", "http://a/#", "http://a/?"):  # of which another path would be asked
        assert f"'{url}' is not a valid URL" in bare("healthcheck", "--url", url, expect=2).stderr
    for timeout in ("0", "-1", "2d", "nan", "2 s", "0.0s", ""):
        assert f"'{timeout}' is not a valid duration" in bare("healthcheck", f"--timeout={timeout}", expect=2).stderr


LOADED = """
import sys
from musicsvc.cli.main import main
sys.argv[1:] = ["healthcheck"]
try:
    main()
finally:
    print(*sorted({"aiohttp", "peewee", "apsw", "jinja2", "typst"} & {*sys.modules}))
"""


def test_the_command_loads_neither_the_server_nor_a_database(serve: Serve) -> None:
    serve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "C.UTF-8")  # of a new interpreter, which has loaded nothing yet
        done = run("-c", LOADED)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
