"""Fixtures for tests of the server as a process."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
import pytest_asyncio
import trustme

from tests.rights.world import OWNER
from tests.support import databases
from tests.support.program import Program
from tests.support.serving import Client
from tests.support.shared_server import Shared, shared_server


class Start(Protocol):
    """Function that starts `musicsvc serve` on a free port; keywords are settings of the section `server`."""

    def __call__(self, *options: str, **settings: object) -> Program: ...


@pytest.fixture
def start(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts servers on a new database; they end with the test."""
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")  # the first one is logged after three seconds
    with ExitStack() as stack:
        count = 0

        def begin(*options: str, **settings: object) -> Program:
            nonlocal count
            count += 1
            folder = tmp_path / f"program{count}"
            folder.mkdir()
            for name, value in settings.items():
                monkeypatch.setenv(f"MUSICSVC_SERVER__{name.upper()}", str(value))
            return stack.enter_context(Program(folder, "serve", "--port", "0", *options))

        yield begin


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    """Run one server for the tests of the module that use it; they are marked `on_shared_loop`."""
    async with shared_server(template, tmp_path_factory.mktemp("shared")) as server:
        yield server


@pytest.fixture
def member(shared: Shared) -> Client:
    """A client of the shared server with the token of an account that no other test has."""
    return shared.client.holding(shared.world(()).tokens[OWNER])


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Create the authority that clients of TLS servers trust."""
    return trustme.CA()


@pytest.fixture
def certified(authority: trustme.CA, tmp_path: Path) -> tuple[str, str]:
    """Create a certificate for 127.0.0.1; return the files of the certificate and of its key."""
    issued = authority.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for blob in issued.cert_chain_pems:
        blob.write_to_path(cert, append=True)
    issued.private_key_pem.write_to_path(key)
    return str(cert), str(key)
