"""The recipes of docs/spreadsheets.md, for the programs that read share links."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.generated_clients import PYTHON
from tests.support.preloaded import given_environment

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spreadsheets.md"


def recipe(program: str) -> str:
    """Return the code below the heading of a program."""
    section = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    (found,) = (each for each in section if each.startswith(f"{program}\n"))
    (code,) = re.findall(r"```\w+\n(.*?)```", found, re.DOTALL)
    return str(code)


def run(program: str, link: str, folder: Path) -> str:
    """Run the recipe for a program in a folder, and return what it prints. Skips the test if it is not installed."""
    code = recipe(program)
    command: list[str | Path]
    if "import " in code:
        _require_python(program)
        command = [PYTHON / "python", "-c", f"LINK = {link!r}\n{code}"]
    else:
        _require(program)
        command = ["sh", "-euc", code]
    environment = {**given_environment(), "HOME": str(folder), "LINK": link}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def _require(program: str) -> None:
    name = {"LibreOffice": "soffice"}.get(program, program)
    for each in {name, "curl"}:
        if shutil.which(each) is None:
            pytest.skip(f"{program if each == name else each} is not installed")


def _require_python(program: str) -> None:
    found = [*PYTHON.parent.glob(f"lib/python{sys.version_info.major}.*/site-packages/{program.lower()}")]
    if not found:
        pytest.skip(f"{program} is not installed (tests/clients/install)")
