"""A server whose database URL is in a file, which SIGHUP reads again."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from musicsvc import config
from musicsvc.server.serving import Source
from tests.support import preloaded
from tests.support.malformed_requests import ALBUMS
from tests.support.program import Program
from tests.support.raw_connection import connected, status
from tests.support.reloads import RELOADED, messages, reload

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc")
PASSWORD, NEXT = "three-romances", "six-fugues"


def with_password(url: str, password: str) -> str:
    """Return the URL of PostgreSQL with a password, which the server of the tests does not ask for."""
    return f"{url}&password={password}" if "?" in url else url


def exposed(program: Program) -> str:
    """Return the arguments and variables of all processes of the server, as other programs may read them."""
    texts = []
    for pid in (program.process.pid, *program.workers):
        with suppress(FileNotFoundError, ProcessLookupError):  # a worker with the settings of before may exit
            texts += [Path(f"/proc/{pid}/{name}").read_text("utf-8") for name in ("cmdline", "environ")]
    return "".join(texts)


@pytest.mark.slow
async def test_the_url_of_a_file_is_read_again_and_is_nowhere_to_be_seen(
    migrated: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = migrated / "secret"
    secret.write_text(f"{with_password(store_url, PASSWORD)}\n")
    monkeypatch.delenv("MUSICSVC_DATABASE_URL")
    monkeypatch.setenv("MUSICSVC_DATABASE_URL_FILE", str(secret))
    monkeypatch.setenv("MUSICSVC_LOG__LEVEL", "debug")
    with Program(migrated, "serve", "--port", "0", "--workers", "2", start=preloaded.fresh) as program:

        async def served() -> None:
            async with connected(program.root) as wire:
                assert await status(wire, "GET", ALBUMS) == 200

        await served()
        secret.write_text(f"{with_password(store_url, NEXT)}\n")
        reload(program)
        await served()
        secret.write_text("")
        reload(program, "could not reload")
        secret.write_text(f"{store_url}-other\n")
        reload(program)
        await served()
        refused = (
            f"could not reload the settings, the old ones still apply: MUSICSVC_DATABASE_URL_FILE: the file {secret}"
        )
        warning = "a restart is needed to change database_url; until then the old value applies"
        assert messages(program) == [RELOADED, f"{refused} is empty. Write the value into it.", warning, RELOADED]
        shown = exposed(program)
        assert program.end(signal.SIGTERM) == 0
    for text in (shown, program.err, program.out):
        assert PASSWORD not in text
        assert NEXT not in text
    assert "MUSICSVC_DATABASE_URL_FILE" in shown


@pytest.mark.only_on("postgres")
def test_new_workers_use_a_new_password_but_not_another_database(store_url: str) -> None:
    first, second, other = (f"{store_url}&{more}" for more in ("password=a", "password=b", "dbname=other&password=b"))
    found = iter([second, other])
    source = Source(
        config.load(options={"database_url": first}), lambda: config.load(options={"database_url": next(found)})
    )
    for _ in range(2):
        assert source.reload()
        assert source.current.settings.database_url == second
