"""Every example of a help page runs as it is written, in a world that has what it names."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest
import trustme

from musicsvc.clock import DAY, Clock
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import AccessRequest, Album, Artist, ImportRun, Track
from musicsvc.store.plays.rollups import listeners
from tests.cli.conftest import Run
from tests.cli.test_help import EXAMPLES
from tests.support.command import run_in_process
from tests.support.program import Program, until

ADA, EVE, BOB = "ada@example.test", "eve@example.test", "bob@example.test"
ROOTED = re.compile(" /(?=srv/|etc/)")
SEVEN = range(1, 8)
ENDLESS = ("serve", "activity --follow")
ASKS = "healthcheck"  # a server
OF_ALL_PLAYS = ("musicsvc plays dump", "musicsvc plays recount", "musicsvc export")
POSTGRES = "postgresql:///musicsvc"
STDIN = {"--password-stdin": "three romances"}


def fill(now: int) -> None:
    """Create the accounts and seven rows of each kind that an example may name by id."""
    for email in (ADA, EVE):
        users.create(email, api_access=True, now=now)
    for number in SEVEN:
        tokens.create(users.by_email(ADA), f"token {number}", now=now)
        Artist.create(name=f"Artist {number}", manager=1, created_at=now)
        Album.create(name=f"Album {number}", release_date="2026-01-02", created_at=now)
        Track.create(name=f"Track {number}", duration=number, created_at=now)
        ImportRun.create(kind="catalog", file="songs.csv", state="done", started_at=now)
        api_access.request(BOB if number == 1 else f"p{number}@example.test", "To play", "few", "Label", now=now - DAY)
    for name in ("Clara Wieck", "Clara & Robert"):
        Artist.create(name=name, manager=1, created_at=now)
    listeners.ensure([*map(listeners.opaque_key, ("fan-7", "fan-8"))])
    assert AccessRequest.select().count() == Track.select().count() == len(SEVEN)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the files that examples name, in the current folder. `/srv` and `/etc` are folders in it."""
    monkeypatch.chdir(tmp_path)
    for name in ("srv/backups", "etc"):
        Path(name).mkdir(parents=True)
    Path("etc/musicsvc.toml").write_text("[server]\nport = 8081\n")
    Path("playlist.json").write_text('{"name": "Road"}')
    Path("songs.csv").write_text("Work,Artist\nA,Ann\n")
    played = {"ts": "2026-01-01T00:00:00Z", "ms_played": 60_000, "spotify_track_uri": "spotify:track:1"}
    names = {"master_metadata_track_name": "A", "master_metadata_album_artist_name": "Ann"}
    Path("history.json").write_text(json.dumps([played | names]))
    certificate = trustme.CA().issue_cert("127.0.0.1")
    certificate.private_key_pem.write_to_path("key.pem")
    certificate.cert_chain_pems[0].write_to_path("cert.pem")
    return tmp_path


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
def test_every_example_of_a_help_page_runs(run: Run, store: Store, folder: Path) -> None:
    now = Clock().now()
    store.write(lambda: fill(now)).result()
    for place in ("srv/backups", "srv"):
        run("db", "backup", str(folder / place / "musicsvc.db"))
    store.close()  # a restore needs the database alone
    # Others need what is deleted. Those of all plays take long once there are two years of them.
    ordered = sorted(dict.fromkeys(EXAMPLES), key=lambda each: (" delete " in each, not each.startswith(OF_ALL_PLAYS)))
    examples = [
        shlex.split(ROOTED.sub(f" {folder}/", example).replace(POSTGRES, f"{folder}/copy.db"))[1:]
        for example in ordered
    ]
    assert len(examples) > 40
    for arguments in examples:
        line = " ".join(arguments)
        if line.startswith((*ENDLESS, ASKS)):
            continue
        new = line.startswith("user create")  # the account of the other examples exists
        given = next((text for option, text in STDIN.items() if option in arguments), "")
        done = run_in_process(
            [part.replace(ADA, f"{len(line)}@example.test") if new else part for part in arguments], given
        )
        assert (line, done.returncode, done.stderr if done.returncode else "") == (line, 0, "")
        if line.startswith("user suspend"):
            run("user", "reinstate", ADA)


@pytest.mark.only_on("sqlite")
def test_every_example_that_asks_a_server_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [shlex.split(example)[1:] for example in EXAMPLES if example.removeprefix("musicsvc ").startswith(ASKS)]
    assert len(examples) == 3
    with Program(tmp_path, "serve", "--port", "0") as program:
        port = program.root.rpartition(":")[2]
        monkeypatch.setenv("MUSICSVC_SERVER__PORT", port)
        for arguments in examples:
            run(*(part.replace("8080", port) for part in arguments), "--timeout", "30s")


@pytest.mark.slow
@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.removeprefix("musicsvc ").startswith(ENDLESS)])
def test_every_example_that_does_not_end_by_itself_runs_until_ctrl_c(run: Run, folder: Path, example: str) -> None:
    run("init")
    arguments = shlex.split(example)[1:]
    served = arguments[0] == "serve"
    port = ("--port", "0") if served else ()  # the port of the example may be taken
    with Program(folder, *arguments, *port) as program:
        if served:
            assert program.root
        else:
            run("user", "create", ADA)
            until(lambda: '"account.created"' in program.out)
        assert program.end(signal.SIGINT) == (0 if served else 130)
