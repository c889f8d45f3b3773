"""The commands of the README work."""

import re
import shlex
import signal
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.command import run_in_process
from tests.support.program import Program

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = [block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]
TRACKS = "external_id,track,artist\n1,Träumerei,Clara Schumann\n"


def commands(block: list[str]) -> list[list[str]]:
    """Return the arguments of each `musicsvc` command of a block."""
    lines = [shlex.split(line, comments=True) for line in block]
    return [line[1:] for line in lines if line and line[0] == "musicsvc"]


def test_the_readme_opens_with_a_command_that_runs_and_one_that_tests() -> None:
    (run,), (test,) = BLOCKS[0], BLOCKS[1]
    setup = "python3 -m venv .venv && .venv/bin/pip install -q "
    assert run == f"{setup}. && .venv/bin/musicsvc serve --demo"
    assert test == f"{setup}-e '.[test]' && .venv/bin/pytest -n auto"
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert [f"readme_command {number})" in script for number in (1, 2)] == [True, True]


@pytest.mark.slow
def test_the_commands_for_real_use_work_one_after_the_other(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracks.csv").write_text(TRACKS, "utf-8")
    *setup, serve = commands(BLOCKS[2])
    assert serve == ["serve"]
    for arguments in [*setup, *commands(BLOCKS[3])]:
        done = run_in_process(arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    with Program(tmp_path, *serve, "--port", "0") as server:
        with urlopen(f"{server.root}/healthz") as alive:  # noqa: S310 - the server that was just started
            assert alive.status == 200
        assert server.end(signal.SIGTERM) == 0
