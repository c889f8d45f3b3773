"""The commands of the pages for developers of clients run as they are written, and print what the pages show."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from musicsvc.server.demo.scoring.card import Card
from musicsvc.server.openapi import document
from tests.support import preloaded
from tests.support.demo import Demo, running_demo
from tests.support.generated_clients import CLIENTS, MODULES, PYTHON, require_node, require_python
from tests.support.page_commands import DOCS, blocks, examples, headings, missing, text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.only_on("sqlite"),  # a demo has its own database, whatever store the run uses
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]
TESTING, QUICKSTART = "testing-your-client.md", "quickstart.md"
CARD = "Report card"
ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Run a demo at the time of the machine, as readers do."""
    with running_demo(tmp_path_factory.mktemp("demo"), now=None) as demo:
        yield demo


@pytest.fixture
def new_demo(started: Demo) -> Iterator[Demo]:
    yield started
    assert started.post("/demo/reset").status == 200


class Reader:
    """Follows pages in one terminal, with a demo of this address and token."""

    def __init__(self, demo: Demo, folder: Path, *, installs: bool = False, **variables: str) -> None:
        self.folder = folder
        self._demo = demo
        self._installs = installs
        given = preloaded.given_environment()
        offline = {} if installs else {"HOME": str(folder), "npm_config_offline": "true"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{given['PATH']}"
        self._environment = given | offline | variables | {"PATH": path}

    def follow(self, page: str, heading: str) -> None:
        """Save the files below a heading and run its commands, which must print what the page shows."""
        for name, content in re.findall(r"Save this as `(.*?)`:\n\n```\w+\n(.*?)```", text(page, heading), re.DOTALL):
            (self.folder / name).write_text(content, "utf-8")
        for commands, shown in examples(page, heading):
            printed = self.run(commands)
            assert missing(shown, printed) == [], commands + printed

    def run(self, commands: str) -> str:
        """Run commands, with what earlier ones have exported; return what they print."""
        lines = commands.replace(ADDRESS, self._demo.root).splitlines()
        if not self._installs:
            lines = [line for line in lines if not re.search(r"\b(?:pip|npm) install\b", line)]
        done = subprocess.run(
            ["bash", "-ec", "\n".join(["[ ! -e exported ] || . ./exported", *lines, "export -p >exported"])],
            cwd=self.folder,
            env=self._environment,
            input=f"{self._demo.token}\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (commands, done.stdout, done.stderr)
        return done.stdout


@pytest.mark.parametrize("heading", [heading for heading in headings(TESTING) if heading != CARD])
def test_the_guide_to_testing_shows_what_its_commands_print(new_demo: Demo, tmp_path: Path, heading: str) -> None:
    Reader(new_demo, tmp_path, DEMO=new_demo.root, TOKEN=new_demo.token).follow(TESTING, heading)


def test_the_guide_to_testing_shows_a_report_card_and_all_of_its_points(tmp_path: Path) -> None:
    with running_demo(tmp_path, "--score", "--world", "standard") as demo:
        Reader(demo, tmp_path, DEMO=demo.root, TOKEN=demo.token).follow(TESTING, CARD)
    described = re.findall(r"^\| ([A-Z].*?) \| .* \| (.*?) \|$", text(TESTING, CARD), re.MULTILINE)
    points = [result.point for result in Card(document.document(), "edge").report().results]
    assert described == [(point.title, point.remedy) for point in points]


@pytest.mark.parametrize("heading", ["curl", "Python", "TypeScript"])
def test_the_quickstart_shows_what_its_commands_print(
    new_demo: Demo, tmp_path: Path, heading: str, *, long: bool
) -> None:
    """Its generators are those of the other tests; with `--long` they are installed by the commands of the page."""
    if not long:
        if heading == "Python":
            require_python()
        if heading == "TypeScript":
            require_node()
        (tmp_path / "client").symlink_to(PYTHON.parent)
        (tmp_path / "node_modules").symlink_to(MODULES)
    reader = Reader(new_demo, tmp_path, installs=long)
    _, variables = blocks(QUICKSTART, "Start a demo")
    reader.run(variables)
    reader.follow(QUICKSTART, heading)


def test_the_quickstart_installs_the_generators_of_the_tests_and_begins_as_the_readme() -> None:
    python, npm = (blocks(QUICKSTART, heading)[0].splitlines()[0] for heading in ("Python", "TypeScript"))
    pinned = json.loads((CLIENTS / "package.json").read_text("utf-8"))["dependencies"]
    assert npm.split()[2:] == [f"{name}@{version}" for name, version in pinned.items()]
    assert f"'{python.split()[-1]}'" in (CLIENTS / "install").read_text("utf-8")
    assert blocks(QUICKSTART, "Start a demo")[0] in (DOCS.parent / "README.md").read_text("utf-8")


def test_the_guide_shows_the_client_that_survives_in_the_tests() -> None:
    for language, suffix in (("python", "py"), ("ts", "ts")):
        (shown,) = blocks(TESTING, "A client that survives", language)
        assert shown in (CLIENTS / f"resilient.{suffix}").read_text("utf-8")
