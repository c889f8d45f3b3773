"""pgbouncer in front of a test's database, with the configuration that docs/postgres.md shows."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support import postgres, program
from tests.support.reserved_port import reserved_port

DOCUMENT = Path(__file__).parents[2] / "docs" / "postgres.md"


@contextmanager
def pooled(url: str, folder: Path, **settings: object) -> Iterator[str]:
    """Start pgbouncer in front of the database at `url`, with these settings changed. Yield the URL through it."""
    command = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if command is None:
        pytest.skip("pgbouncer is not installed")
    folder.mkdir(mode=0o755)
    users, log = folder / "users", folder / "log"
    users.write_text(f'"{postgres.USER}" ""\n', "utf-8")
    with reserved_port() as port:
        changed = {"listen_port": port, "auth_type": "trust", "auth_file": users, "unix_socket_dir": "", **settings}
        (folder / "pgbouncer.ini").write_text(configuration(url, changed), "utf-8")
        line = [*postgres.unprivileged(folder), command, str(folder / "pgbouncer.ini")]
        with log.open("wb") as output:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        with program.ended(process):
            program.until(lambda: b"process up" in log.read_bytes() or process.poll() is not None)
            assert process.poll() is None, log.read_text("utf-8")
            yield f"postgresql://{postgres.USER}@127.0.0.1:{port}/music"


def configuration(url: str, changed: dict[str, object]) -> str:
    """Return the documented configuration, in front of the database at `url`, with these settings."""
    found = re.search(r"```ini\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert found
    address = urlsplit(url)
    (host,) = parse_qs(address.query)["host"]
    text, count = re.subn(r"(?m)^music = .*$", f"music = host={host} dbname={address.path[1:]}", found[1])
    assert count == 1
    for name, value in changed.items():
        text = re.sub(rf"(?m)^{name} = .*\n", "", text) + f"{name} = {value}\n"
    return text
