"""`packaging/build wheel`: the sdist and the wheel are complete, and install as programs."""

import hashlib
import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from email import message_from_string
from pathlib import Path

import pytest

from tests.packaging.installed import Installed
from tests.support import preloaded

pytestmark = [pytest.mark.long, pytest.mark.only_on("sqlite")]

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
SDIST, WHEEL = f"musicsvc-{VERSION}.tar.gz", f"musicsvc-{VERSION}-py3-none-any.whl"


def _run(*command: str | Path, variables: Mapping[str, str] | None = None, folder: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _committed() -> set[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: the list of its files is in Git")
    return set(_run("git", "ls-tree", "-r", "--name-only", "-z", "HEAD").rstrip("\0").split("\0"))


def test_the_sdist_has_every_committed_file(build: Callable[[str], Path]) -> None:
    with tarfile.open(build("wheel") / SDIST) as packed:
        names = {member.name.partition("/")[2] for member in packed}
    assert names == _committed() | {"PKG-INFO"}


def test_the_wheel_has_every_file_of_the_package_and_the_fixtures(build: Callable[[str], Path]) -> None:
    packed = {name for name in zipfile.ZipFile(build("wheel") / WHEEL).namelist() if ".dist-info/" not in name}
    files = {file for file in _committed() if file.startswith("musicsvc/")}
    fixtures = {f"musicsvc/_{file}" for file in _committed() if file.startswith("fixtures/")}
    assert packed == files | fixtures


def test_the_wheel_names_the_licences_of_all_that_it_has_and_bears_their_texts(build: Callable[[str], Path]) -> None:
    wheel = zipfile.ZipFile(build("wheel") / WHEEL)
    info = f"musicsvc-{VERSION}.dist-info"
    metadata = message_from_string(wheel.read(f"{info}/METADATA").decode())
    expression = metadata["License-Expression"].split(" AND ")
    vendored = [tomllib.loads(file.read_text("utf-8"))["licence"] for file in ROOT.glob("musicsvc/**/VENDORED.toml")]
    assert {*vendored, "MIT"} <= set(expression)
    assert set(expression) - {*vendored, "MIT"} == {"BSD-3-Clause"}  # a part of Swagger UI
    texts = {file for file in _committed() if re.search(r"^LICENSE$|^musicsvc/.*(LICENSE|NOTICE)[^/]*$", file)}
    packed = {name.removeprefix(f"{info}/licenses/") for name in wheel.namelist() if "/licenses/" in name}
    assert packed == texts
    assert set(metadata.get_all("License-File", [])) == texts


def test_two_builds_of_a_commit_are_the_same_bytes(build: Callable[[str], Path], tmp_path: Path) -> None:
    """The second one is built from the sdist, in another folder, with another umask."""
    first = build("wheel")
    with tarfile.open(first / SDIST) as packed:
        packed.extractall(tmp_path, filter="data")
    again = tmp_path / "again"
    script = tmp_path / f"musicsvc-{VERSION}" / "packaging" / "build"
    _run("sh", "-c", 'umask 077; "$0" wheel -o "$1"', script, again, folder=tmp_path)
    assert {file.name: file.read_bytes() for file in again.iterdir()} == {
        file.name: file.read_bytes() for file in first.iterdir()
    }


def test_the_sums_are_those_of_the_files(build: Callable[[str], Path]) -> None:
    listed = (build("wheel") / "SHA256SUMS").read_text("utf-8")
    sums = {name: hashlib.sha256((build("wheel") / name).read_bytes()).hexdigest() for name in (WHEEL, SDIST)}
    assert listed == "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def test_the_tests_of_the_sdist_run(build: Callable[[str], Path], tmp_path: Path) -> None:
    with tarfile.open(build("wheel") / SDIST) as packed:
        packed.extractall(tmp_path, filter="data")
    folder = tmp_path / f"musicsvc-{VERSION}"
    _run("python3", "-m", "venv", ".venv", folder=folder)
    _run(".venv/bin/pip", "install", "-q", "-e", ".[test]", folder=folder)
    collected = _run(".venv/bin/pytest", "--collect-only", "-q", folder=folder)
    assert " tests collected" in collected
    passed = _run(
        ".venv/bin/pytest", "-q", "tests/test_readme.py", "tests/reports", "tests/store/seeding", folder=folder
    )
    assert " passed" in passed


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_a_tool_installs_the_wheel_as_a_program_and_then_the_extra_that_it_asks_for(
    build: Callable[[str], Path], tmp_path: Path, tool: str
) -> None:
    _run("python3", "-m", "venv", tmp_path / "tools")
    _run(tmp_path / "tools/bin/pip", "install", "-q", tool)
    places = {name: str(tmp_path / name) for name in ("PIPX_HOME", "PIPX_BIN_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR")}
    variables = {
        **preloaded.given_environment(),
        **places,
        "PATH": f"{tmp_path}/tools/bin:{preloaded.given_environment()['PATH']}",
    }
    install = "pipx install" if tool == "pipx" else "uv tool install"
    _run("sh", "-c", f'{install} "$0"', build("wheel") / WHEEL, variables=variables)
    place = tmp_path / ("PIPX_BIN_DIR" if tool == "pipx" else "UV_TOOL_BIN_DIR") / "musicsvc"
    program = Installed(tmp_path, place, variables={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert program.run("--version") == f"musicsvc {VERSION}\n"
    program.answers_the_printed_command()
    program.run("init")
    export = "export", "tracks", "-o", str(tmp_path / "out.parquet")
    refused = program.try_to(*export)
    said = re.fullmatch(r"Error: Parquet needs the extra parquet. Run: (.*)\n", refused.stderr)
    assert said, refused.stderr
    _run("sh", "-c", said[1], variables=variables)
    program.run(*export)
    assert (tmp_path / "out.parquet").read_bytes().startswith(b"PAR1")
