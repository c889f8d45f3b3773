"""The programs on a full disk: reads are answered, and revocations are the only writes that succeed."""

import asyncio
import json
import os
import re
import resource
import shutil
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.config import Abuse, Limits, Settings
from musicsvc.store import opening
from musicsvc.store.accounts import tokens
from musicsvc.store.doctor import files
from musicsvc.store.engine.sqlite import reserved_space
from tests.faults import small_disk
from tests.faults.small_disk import SmallDisk
from tests.support.program import Program, is_running, run, until
from tests.support.raw_connection import connected, request
from tests.support.serving import person, running

pytestmark = [pytest.mark.slow, pytest.mark.only_on("sqlite")]

PEOPLE = ("ann", "ben", "cleo", "dan")
V1 = "/api/v1"
READY, READ_ONLY = (200, {"status": "ready"}), (503, {"status": "read-only"})


class Place:
    """A data folder on a small disk, with accounts in its database."""

    def __init__(self, disk: SmallDisk, aside: Path) -> None:
        self.disk = disk
        self.url = f"sqlite:///{disk.folder / 'musicsvc.db'}"
        self._aside = aside
        with opening.connect(self.url) as store:
            self.tokens = [person(store, Clock(), f"{name}@label.test")[1] for name in PEOPLE]
            store.reserve_space()

    def serve(self, *options: str) -> Program:
        """Start the server; its output goes to another disk."""
        return Program(self._aside, "serve", "--port", "0", *options)

    def run(self, *arguments: str) -> str:
        """Run a command that must succeed; return its output."""
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ballast(self) -> int:
        return (self.disk.folder / reserved_space.NAME).stat().st_size


@pytest.fixture
def place(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with small_disk.mounted(tmp_path / "small") as disk:
        monkeypatch.setenv("MUSICSVC_DATA_DIR", str(disk.folder))
        monkeypatch.setenv("MUSICSVC_BACKUPS__EVERY_HOURS", "0")
        shutil.copy(store_url.removeprefix("sqlite:///"), disk.folder)
        (tmp_path / "aside").mkdir()
        yield Place(disk, tmp_path / "aside")


async def ask(root: str, token: str, method: str, path: str, body: bytes = b"") -> tuple[int, str | None]:
    """Send a request on a separate connection; return status and Retry-After."""
    async with connected(root) as wire:
        kind = ["Content-Type: application/json"] if body else []
        await wire.send(request(method, V1 + path, f"Authorization: Bearer {token}", *kind, body=body))
        answer = await wire.answer()
        return answer.status, answer.headers.get("Retry-After")


async def write(root: str, token: str) -> tuple[int, str | None]:
    """Return the bytes of a write that needs disk space."""
    return await ask(root, token, "POST", "/artists", json.dumps({"name": "Amy", "description": "x" * 9000}).encode())


def readiness(root: str) -> tuple[int, object]:
    """Return status and body of /readyz."""
    try:
        with urllib.request.urlopen(f"{root}/readyz") as answer:  # noqa: S310 - our server
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


async def written_out(root: str, token: str) -> None:
    """Write until the disk is full."""
    deadline = time.monotonic() + 20
    while (await write(root, token))[0] == 201:
        assert time.monotonic() < deadline, "the disk does not get full"


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
async def test_a_full_disk_keeps_nobody_from_reading_and_no_token_alive(place: Place, workers: str) -> None:
    ann, ben, cleo, dan = place.tokens
    with place.serve("--workers", workers) as program:
        root = program.root
        assert [(await ask(root, token, "GET", "/users/me"))[0] for token in place.tokens] == [200] * 4
        place.disk.fill()
        await written_out(root, ann)
        assert await write(root, ann) == (503, "1")
        until(lambda: readiness(root) == READ_ONLY)
        fresh = place.run("token", "regenerate", "1")
        place.run("token", "revoke", "2")
        place.run("access", "revoke", "cleo@label.test")
        place.run("user", "suspend", "dan@label.test")
        for token, status in ((ann, 401), (fresh, 200), (ben, 401), (cleo, 403), (dan, 403)):
            assert (await ask(root, token, "GET", "/users/me"))[0] == status
        assert await write(root, fresh) == (503, "1")
        place.disk.empty()
        began = time.monotonic()
        assert (await write(root, fresh))[0] == 201
        assert time.monotonic() - began < 5
        until(lambda: readiness(root) == READY)
        until(lambda: place.ballast() == reserved_space.SIZE)
    assert "Traceback" not in program.err


async def test_a_server_starts_on_a_full_disk(place: Place) -> None:
    place.disk.fill()
    with place.serve() as program:
        root = program.root
        assert (await ask(root, place.tokens[0], "GET", "/users/me"))[0] == 200
        await written_out(root, place.tokens[0])
        place.run("token", "revoke", "1")
        assert (await ask(root, place.tokens[0], "GET", "/users/me"))[0] == 401
    assert "Traceback" not in program.err


def test_commands_work_on_a_full_disk_where_no_server_runs(place: Place) -> None:
    place.disk.fill()
    place.run("token", "revoke", "1")
    shown = json.loads(place.run("token", "list", "--json"))
    assert [token["state"] for token in shown] == ["revoked", "valid", "valid", "valid"]


async def test_files_that_may_not_grow_are_a_full_disk_too_and_end_with_the_limit(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RLIMIT_FSIZE, which needs no rights and no mount."""
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(Path(store_url.removeprefix("sqlite:///")).parent))
    with opening.connect(store_url) as store:
        ann = person(store, Clock(), "ann@label.test")[1]
    with Program(tmp_path, "serve", "--port", "0") as program:
        root, pid = program.root, program.worker
        assert (await write(root, ann))[0] == 201
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
        assert await write(root, ann) == (503, "1")
        assert (await ask(root, ann, "GET", "/users/me"))[0] == 200
        until(lambda: readiness(root) == READ_ONLY)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        began = time.monotonic()
        assert (await write(root, ann))[0] == 201
        assert time.monotonic() - began < 5


def test_a_disk_too_small_for_the_ballast_is_told_with_what_it_lacks(place: Place) -> None:
    (place.disk.folder / reserved_space.NAME).unlink()
    (place.disk.folder / "large").write_bytes(bytes(18 * 1024 * 1024))
    no_room = f"There is no room for {place.disk.folder}/ballast"
    says = rf"{no_room}, and revoking tokens may fail on a full disk\. Free another"
    done = run("init")
    assert (done.returncode, len(re.findall(rf"(?m)^{says} [0-9.]+ MB on this disk\.$", done.stderr))) == (0, 1), done
    with place.serve() as program:
        assert program.root
        until(lambda: re.search(says, program.err))
        (finding,) = files.check_reserved_space(place.disk.folder / "musicsvc.db")
        wanting = re.fullmatch(
            r"Revoking tokens may fail on a full disk\. Free another ([0-9.]+) MB on this disk\.", finding.hint
        )
        assert wanting is not None
        assert 1 < float(wanting[1]) < 10
        os.truncate(place.disk.folder / "large", 18 * 1024 * 1024 - int(float(wanting[1]) * 1e6))
        until(lambda: "background job recovered: reserving disk space for revocations" in program.err)
        assert len(re.findall(f"background job failed: reserving disk space for revocations: {says}", program.err)) == 1
    assert place.ballast() == reserved_space.SIZE


def test_a_read_only_disk_is_told_in_one_line(place: Place) -> None:
    place.disk.mount("ro")
    done = run("serve", "--port", "0")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    assert f"The folder {place.disk.folder} is on a read-only disk: " in done.stderr


async def test_a_disk_that_became_read_only_under_a_killed_server_is_read_and_not_ready(place: Place) -> None:
    """The write-ahead log is left behind, so that SQLite can open the database."""
    ann = place.tokens[0]
    with place.serve() as killed:
        assert (await write(killed.root, ann))[0] == 201
        worker = killed.worker
        killed.end(signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        until(lambda: not is_running(worker))
    place.disk.mount("ro")
    with place.serve() as program:
        root = program.root
        assert [readiness(root) for _ in range(3)] == [READ_ONLY] * 3
        assert [(await ask(root, ann, "GET", path))[0] for path in ("/users/me", "/artists", "/artists/1")] == [200] * 3
        assert await write(root, ann) == (503, "1")
        said = f"Error: {root}/readyz: 503 read-only\n"
        assert run("healthcheck", "--ready", "--url", root).stderr == said
        place.disk.mount("rw")
        until(lambda: readiness(root) == READY)
        assert (await write(root, ann))[0] == 201
    assert program.err.count("not ready: ") == program.err.count("ready again") == 1
    assert "Traceback" not in program.err


async def test_who_is_revoked_for_abuse_on_a_full_disk_is_revoked_for_good(place: Place) -> None:
    strict = Settings(limits=Limits(local=True, token="20/minute"), abuse=Abuse(refusals=10))
    with opening.connect(place.url) as store:
        async with running(store, Clock(), strict) as client:
            hammering = client.holding(place.tokens[0])
            place.disk.fill()
            deadline = time.monotonic() + 20
            while (await hammering.get("users/me")).status != 401:
                assert time.monotonic() < deadline, "the token lives on"
            while store.read(lambda: tokens.get(1).revoked_at).result() is None:
                assert time.monotonic() < deadline, "not written"
                await asyncio.sleep(0.05)
    with opening.connect(place.url) as store:
        assert store.read(lambda: tokens.get(1).revoked_at).result() is not None
