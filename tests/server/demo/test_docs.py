"""The commands of docs/testing-your-client.md print what it shows."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.demo import running_demo

pytestmark = pytest.mark.only_on("sqlite")  # a demo has its own database, whatever store the run uses
PAGE = (Path(__file__).parents[3] / "docs" / "testing-your-client.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```\n\n```http\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```sh\n") > 3
    with running_demo(tmp_path) as demo:
        for commands, shown in blocks:
            environment = {"PATH": os.environ["PATH"], "DEMO": demo.root, "TOKEN": demo.token}  # noqa: TID251 - of the test run
            run = subprocess.run(["bash", "-c", commands], env=environment, capture_output=True, text=True, check=False)
            for line in shown.splitlines():
                assert line in run.stdout, commands + run.stdout + run.stderr
