"""No token or password appears in any file, log, response or process list."""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import aiohttp
import pytest

from musicsvc.clock import Clock
from musicsvc.store import opening
from musicsvc.store.accounts import tokens, users
from tests.support import program
from tests.support.preloaded import fresh
from tests.support.program import until
from tests.support.raw_connection import connected, request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes in /proc"),
]

V1 = "/api/v1"
MARK = "zQ4-tell-nobody-"  # every password begins with it
AT_ONCE = 16  # requests; more registrations do not wait
SETTINGS = {
    "LOG__REQUESTS": "true",
    "LOG__LEVEL": "debug",
    "LIMITS__LOCAL": "true",  # so that what limits keep is searched too
    "LIMITS__TOKEN": "1000000/minute",
    "LIMITS__ADDRESS": "1000000/minute",
    "LIMITS__REGISTER": "1000000/hour",
    "LIMITS__COVER_ART": "1000000/minute",
    "ABUSE__PROBES": "1000000",
    "REGISTRATION__GRANTS_ACCESS": "true",
}


class Secrets:
    """The secrets in use, and the unsuccessful responses of the server."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.tokens: list[str] = []
        self.former: list[str] = []
        self.passwords: list[str] = []
        self.answers: list[bytes] = []

    def password(self) -> str:
        """Return a new password."""
        self.passwords.append(f"{MARK}{self._chance.randbytes(12).hex()}")
        return self.passwords[-1]

    def found_in(self, content: bytes) -> list[str]:
        """Return the secrets in the text, and anything that looks like a part of one."""
        marked = [MARK] * (MARK.encode() in content)
        alike = [match.decode() for match in re.findall(rb"(?i)msvc_[0-9a-z]{6,}", content)]
        return (
            marked + alike + [each for each in self.tokens + self.former + self.passwords if each.encode() in content]
        )


def run(*arguments: str, stdin: str = "") -> str:
    """Return the output of a command."""
    done = program.run(*arguments, stdin=stdin)
    done.check_returncode()
    return done.stdout.strip()


async def register(session: aiohttp.ClientSession, secrets: Secrets, count: int) -> None:
    """Register accounts with a password and a token each."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        body = {"email": f"person{number}@new.test", "password": secrets.password(), "token_name": "mine"}
        async with turn, session.post(f"{V1}/auth/register", json=body) as answer:
            assert answer.status == 200
            secrets.tokens.append((await answer.json())["user"]["access_token"])

    await asyncio.gather(*(one(number) for number in range(count)))


def by_command(secrets: Secrets, *, long: bool) -> None:
    """Create an account with password and token from the command line."""
    run("user", "create", "cli@new.test", "--password-stdin", stdin=secrets.password())
    run("access", "grant", "cli@new.test")
    secrets.tokens.append(run("token", "create", "cli@new.test", "--name", "by hand"))
    run("token", "inspect", stdin=secrets.tokens[-1])
    if long:
        run("user", "password", "cli@new.test", "--password-stdin", stdin=secrets.password())
        secrets.former.append(secrets.tokens.pop())
        secrets.tokens.append(run("token", "regenerate", "1"))


def make_tokens(url: str, secrets: Secrets, count: int) -> None:
    """Create tokens of one account."""
    with opening.connect(url) as store:
        user = store.write(lambda: users.create("many@new.test", api_access=True, now=Clock().now())).result()
        made = [store.write(lambda: tokens.create(user, "one of many", now=Clock().now())[1]) for _ in range(count)]
        secrets.tokens += [future.result() for future in made]


def ways(secret: str, holder: str) -> Iterator[bytes]:
    """Return requests with the secret in the right place and in all wrong ones; `holder`: a valid token."""
    token = secret if tokens.well_formed(secret) else holder
    bearer, kind = f"Authorization: Bearer {token}", "Content-Type: application/json"
    yield request("GET", f"{V1}/users/me", f"Authorization: Bearer {secret}")
    basic = base64.b64encode(f"someone@new.test:{secret}".encode()).decode()
    yield request("GET", f"{V1}/users/me", bearer)
    yield request("GET", f"{V1}/users/me", f"Authorization: {secret}")
    yield request("GET", f"{V1}/users/me", f"Authorization: Bearer {secret} {secret}")
    yield request("GET", f"{V1}/users/me", f"Authorization: Bearer {secret[:-1]}")
    yield request("GET", f"{V1}/users/me", f"Authorization: Basic {basic}")
    yield request("GET", f"{V1}/users/me", bearer, bearer)
    yield request("GET", f"{V1}/albums?token={secret}&perPage={secret}&with={secret}", bearer)
    yield request("GET", f"{V1}/{secret}", bearer)
    yield request("GET", f"/{secret}?{secret}")
    yield request("GET", f"{V1}/albums/{secret}", bearer)
    yield request("GET", f"{V1}/users/{secret}", bearer)
    yield request("PUT", f"{V1}/notifications/{secret}/subscriptions", bearer, kind, body=b'{"selections": []}')
    yield request("GET", f"/docs/{secret}")
    yield request("GET", f"/cover-art/previews/{secret}")
    yield request("GET", f"{V1}/albums", f"Cookie: session={secret}", f"User-Agent: {secret}", f"Referer: {secret}")
    # What a client calls its request is noted and told back, unless it has a token in it.
    yield request("GET", f"{V1}/albums", bearer, f"X-Request-Id: {token}")
    yield request("GET", f"{V1}/nowhere", f"X-Request-Id: id.{token}~")
    yield request("GET", f"{V1}/albums", f"X-Forwarded-For: {secret}", f"If-None-Match: {secret}")
    yield request(secret, f"{V1}/albums", bearer)
    for body in (
        {"email": secret, "password": secret, "token_name": secret},
        {"email": "someone@new.test", "password": secret * 9, "name": [secret]},
        {"name": {secret: secret}, "artist_id": secret, "ids": [secret], "plays": [{"track_id": secret}]},
    ):
        for path in ("auth/register", "albums", "plays", "playlists/1/tracks/add", "cover-art/preview"):
            yield request("POST", f"{V1}/{path}", bearer, kind, body=json.dumps(body).encode())
    yield request("POST", f"{V1}/albums", bearer, kind, body=f'{{"name": "{secret}'.encode())
    yield request("POST", f"{V1}/albums", bearer, f"Content-Type: {secret}", body=secret.encode())
    yield request("POST", f"{V1}/albums", bearer, kind, f"Content-Encoding: {secret}", body=secret.encode())


def broken(secret: str) -> Iterator[bytes]:
    """Return bytes that are not HTTP."""
    yield f"{secret}\r\n\r\n".encode()
    yield f"GET {V1}/albums HTTP/{secret}\r\n\r\n".encode()
    yield f"GET {V1}/albums HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer {secret}\r\n\r\n".encode()
    yield f"GET {V1}/albums HTTP/1.1\r\nHost: localhost\r\n{secret}\r\n\r\n".encode()
    yield f"POST {V1}/albums HTTP/1.1\r\nHost: localhost\r\nContent-Length: {secret}\r\n\r\n".encode()


async def use(root: str, secrets: Secrets, raws: Iterable[bytes]) -> None:
    """Send each request on its own connection and keep the responses."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(raw: bytes) -> None:
        async with turn, connected(root) as wire:
            await wire.send(raw)
            wire.end()
            secrets.answers.append(await wire.rest())

    await asyncio.gather(*map(one, raws))


def files(folder: Path) -> dict[str, bytes]:
    """Return every file below the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def processes(server: program.Program) -> dict[str, bytes]:
    """Return what `ps` shows of the server and its workers."""
    found = {}
    for pid in (server.process.pid, *server.workers):
        for name in ("cmdline", "environ"):
            with suppress(FileNotFoundError):
                found[f"{name} of {pid}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    return found


def test_the_search_finds_a_planted_secret() -> None:
    secrets = Secrets(1)
    secrets.tokens.append(tokens.generate())
    password = secrets.password()
    for leak in (secrets.tokens[0], secrets.tokens[0][:20], password, password[: len(MARK)]):
        assert secrets.found_in(f"one {leak} two".encode())
    assert not secrets.found_in(b"one msvc_ two")


async def test_no_secret_is_anywhere(
    tmp_path: Path,
    store_url: str,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    *,
    long: bool,
) -> None:
    folder = Path(store_url.removeprefix("sqlite:///")).parent
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(folder))
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"MUSICSVC_{name}", value)
    secrets = Secrets(seed)
    by_command(secrets, long=long)
    make_tokens(store_url, secrets, 80)
    (tmp_path / "aside").mkdir()
    # A new interpreter, because /proc shows the environment that a process began with.
    with program.Program(tmp_path / "aside", "serve", "--port", "0", "--workers", "2", start=fresh) as server:
        async with aiohttp.ClientSession(server.root, timeout=aiohttp.ClientTimeout(30)) as session:
            await register(session, secrets, 1000 if long else 20)
            chance, holder = Random(seed), secrets.tokens[0]
            for at, secret in enumerate([*secrets.tokens, *secrets.former, *secrets.passwords]):
                every = [*ways(secret, holder), *broken(secret)]
                await use(server.root, secrets, every if at % 25 == 0 else chance.sample(every, 2))
            for token in secrets.tokens:
                async with session.get(f"{V1}/users/me", headers={"Authorization": f"Bearer {token}"}) as answer:
                    assert answer.status == 200
            async with session.get("/metrics") as answer:
                secrets.answers.append(await answer.read())
        until(lambda: len(server.workers) == 2)
        run("db", "backup")
        seen = files(folder) | files(tmp_path / "aside") | processes(server)
    seen |= {f"{name}, at the end": content for name, content in (files(folder) | files(tmp_path / "aside")).items()}
    seen |= {f"answer {number}": content for number, content in enumerate(secrets.answers)}
    assert {name: found for name, content in seen.items() if (found := secrets.found_in(content))} == {}
    record_property("tokens, passwords", (len(secrets.tokens), len(secrets.passwords)))
    record_property("answers, bytes searched", (len(secrets.answers), sum(map(len, seen.values()))))
