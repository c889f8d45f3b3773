"""The examples of docs/development/adding.md add what they say to a copy of the program."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.support import preloaded, program

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "development" / "adding.md"
TRACKS = "Track,Artist,Duration,Energie\nNocturne,Fanny Hensel,3:45,40\nNotturno,Fanny Hensel,3:50,\n"
OWNER = "demo@musicsvc.test"

pytestmark = pytest.mark.slow


class Run(Protocol):
    def __call__(self, *args: str) -> str: ...


def example(heading: str) -> str:
    """Return the change that the section shows."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return str(re.findall(r"^```diff\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)[0])


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Run]]:
    """Return a function that applies an example to a copy of the program with sample data, and returns another one.

    That one runs its commands, which fork from a process that has imported the copy.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))  # outside of a repository git looks for none
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "data"))
    with ExitStack() as closed:

        def add(heading: str) -> Run:
            for part in ("musicsvc", "fixtures"):
                shutil.copytree(ROOT / part, tmp_path / part)  # with its bytecode
            apply = ["git", "apply", "-"]
            applied = subprocess.run(apply, input=example(heading), capture_output=True, text=True, check=False)
            assert applied.returncode == 0, f"make the example of {PAGE.name} again: {applied.stderr}"
            server = preloaded.ForkServer("programs")
            closed.callback(server.close)

            def start(arguments: Sequence[str], out: int, err: int, given: int) -> preloaded.Process:
                return server.start(arguments, preloaded.environment(), given, out, err)

            def run(*args: str) -> str:
                done = program.run(*args, start=start)
                assert done.returncode == 0, (args, done.stdout, done.stderr)
                return done.stdout

            run("init")
            run("seed", "--accounts")
            return run

        yield add


def answer(run: Run, path: str) -> Any:
    return json.loads(run("request", "GET", f"/api/v1{path}", "--user", OWNER, "--json"))["body"]


@pytest.mark.parametrize("heading", ["A field of the catalog", "An endpoint"])
def test_each_needs_three_files(heading: str) -> None:
    assert len(re.findall(r"^diff --git", example(heading), re.MULTILINE)) == 3


def test_a_field_is_shown_edited_imported_merged_and_in_the_changes(
    added: Callable[[str], Run], tmp_path: Path
) -> None:
    run = added("A field of the catalog")
    file = tmp_path / "tracks.csv"
    file.write_text(TRACKS)
    run("import", "catalog", str(file), "--user", OWNER)
    imported = {track["name"]: track for track in json.loads(run("track", "list", "--json"))}
    one, other = (imported[name] for name in ("Nocturne", "Notturno"))
    assert (one["energy"], other["energy"]) == (40, None)
    assert ",energy," in run("import", "template")
    cursor = answer(run, "/changes")["cursor"]
    run("track", "edit", str(one["id"]), "--energy", "70")
    listed = answer(run, f"/changes?since={cursor}")["changes"]
    assert [(each["model_type"], each["id"]) for each in listed] == [("track", one["id"])]
    run("track", "merge", str(one["id"]), str(other["id"]), "--yes")
    assert answer(run, f"/tracks/{other['id']}")["track"]["energy"] == 70


def test_an_endpoint_answers(added: Callable[[str], Run]) -> None:
    run = added("An endpoint")
    assert answer(run, "/tracks/1/credits") == {"status": "success", "credits": ["Johann Sebastian Bach"]}
    assert "/tracks/{id}/credits" in run("openapi")
