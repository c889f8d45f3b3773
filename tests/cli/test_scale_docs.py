"""The commands of docs/scale.md, run in order."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "scale.md").read_text("utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page_succeed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("seed")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.strip().splitlines()]
    commands = [arguments for program, *arguments in lines if program == "musicsvc"]
    assert ["plays", "dump", "--output", "plays-of-label"] in commands
    for arguments in commands:
        run(*arguments)
