"""The examples of docs/development/adding.md add what they say to a copy of the program."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import pytest

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


def added(heading: str, folder: Path) -> Run:
    """Apply the example to a copy of the program with sample data. Return a function that runs its commands."""
    for part in ("musicsvc", "fixtures"):
        shutil.copytree(ROOT / part, folder / part)  # with its bytecode
    # Outside of a repository git does not look for one, wherever the folder is.
    environment = {
        **os.environ,  # noqa: TID251 - handed on
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "MUSICSVC_DATA_DIR": str(folder / "data"),
    }
    apply = ["git", "apply", "-"]
    applied = subprocess.run(
        apply, cwd=folder, env=environment, input=example(heading), capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, f"make the example of {PAGE.name} again: {applied.stderr}"

    def run(*args: str) -> str:
        command = [sys.executable, "-m", "musicsvc", *args]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout

    run("init")
    run("seed", "--accounts")
    return run


def answer(run: Run, path: str) -> Any:
    return json.loads(run("request", "GET", f"/api/v1{path}", "--user", OWNER, "--json"))["body"]


@pytest.mark.parametrize("heading", ["A field of the catalog", "An endpoint"])
def test_each_needs_three_files(heading: str) -> None:
    assert len(re.findall(r"^diff --git", example(heading), re.MULTILINE)) == 3


def test_a_field_is_shown_edited_imported_merged_and_in_the_changes(tmp_path: Path) -> None:
    run = added("A field of the catalog", tmp_path)
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


def test_an_endpoint_answers(tmp_path: Path) -> None:
    run = added("An endpoint", tmp_path)
    assert answer(run, "/tracks/1/credits") == {"status": "success", "credits": ["Johann Sebastian Bach"]}
    assert "/tracks/{id}/credits" in run("openapi")
