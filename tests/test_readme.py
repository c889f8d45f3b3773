"""The README's commands do what it says; its links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = [block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]
TRACKS = "external_id,track,artist\n1,Träumerei,Clara Schumann\n"


def commands(block: list[str]) -> list[list[str]]:
    """The commands of a block without their comments, `musicsvc` being the program that is tested."""
    lines = [shlex.split(line, comments=True) for line in block]
    return [[sys.executable, "-m", *line] for line in lines if line and line[0] == "musicsvc"]


def test_the_readme_opens_with_a_command_that_runs_and_one_that_tests() -> None:
    (run,), (test,) = BLOCKS[0], BLOCKS[1]
    setup = "python3 -m venv .venv && .venv/bin/pip install -q "
    assert run == f"{setup}. && .venv/bin/musicsvc serve --demo"
    assert test == f"{setup}-e '.[test]' && .venv/bin/pytest -n auto"
    assert "\npytest -n auto\n" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_commands_for_real_use_work_one_after_the_other(tmp_path: Path, store_url: str) -> None:
    environment = {**os.environ, "MUSICSVC_DATABASE_URL": store_url, "PYTHONPATH": str(ROOT)}  # noqa: TID251
    (tmp_path / "tracks.csv").write_text(TRACKS, "utf-8")
    *setup, serve = commands(BLOCKS[2])
    assert serve[-1] == "serve"
    for command in [*setup, *commands(BLOCKS[3])]:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
    with subprocess.Popen([*serve, "--port", "0"], env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        assert said.startswith("musicsvc listens on http://127.0.0.1:")
        with urlopen(f"{said.split()[-1]}/healthz") as alive:  # noqa: S310 - the server that was just started
            assert alive.status == 200
        server.terminate()
    assert server.returncode == 0


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)", README))
def test_a_link_of_the_readme_leads_somewhere(link: str) -> None:
    assert (ROOT / link).is_file()
