"""The version in the documents, and `packaging/release`, which sets it and tags the commit."""

import itertools
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support import preloaded

ROOT = Path(__file__).resolve().parents[2]
NAMES = re.compile(r"musicsvc[-_:](?:\$\{MUSICSVC_VERSION:-)?(\d+\.\d+\.\d+(?:[.~]dev\d+)?)")
DOCUMENTS = {"docs/install.md": 9, "packaging/README.md": 5, "packaging/image/compose.yaml": 1}

pytestmark = [
    pytest.mark.only_on("sqlite"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository"),
]


def version(root: Path) -> str:
    found: str = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    return found


def named(root: Path, document: str) -> list[str]:
    """Return the versions in the names of packages."""
    return NAMES.findall((root / document).read_text("utf-8"))


def test_documents_name_the_packages_that_are_built() -> None:
    own = version(ROOT)
    for document, number in DOCUMENTS.items():
        found = named(ROOT, document)
        assert (len(found), {each.replace("~dev", ".dev") for each in found}) == (number, {own}), document


class Clone:
    """A clone of the repository with what is not committed yet; what takes minutes does nothing in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "clone"
        programs = folder / "programs"
        programs.mkdir()
        for name in ("pip", "python"):
            (programs / name).write_text(f"#!/bin/sh\necho {name} $* >>{folder}/run\n")
            (programs / name).chmod(0o755)
        parts = itertools.product(("AUTHOR", "COMMITTER"), ("NAME", "EMAIL"))
        self.variables = preloaded.given_environment() | {
            f"GIT_{who}_{what}": "ann@example.test" for who, what in parts
        }
        self.variables["PATH"] = f"{programs}:{self.variables['PATH']}"
        subprocess.run(["git", "clone", "-q", "--shared", ROOT, self.root], check=True)
        for file in ("packaging/release", "packaging/version", "pyproject.toml", *DOCUMENTS):
            (self.root / file).write_bytes((ROOT / file).read_bytes())
            (self.root / file).chmod((ROOT / file).stat().st_mode)
        (self.root / "docs/generate").write_text("#!/bin/sh\n")
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "as it is")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=self.variables, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def release(self, *arguments: str) -> tuple[int, str]:
        """Run the script. Return its exit code, and what it says."""
        line = [str(self.root / "packaging/release"), *arguments]
        done = subprocess.run(line, env=self.variables, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_release_is_tagged_with_its_version_everywhere_and_the_next_one_begins(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    code, said = clone.release("98.7.6", "98.8.0.dev0")
    assert (code, "Tagged v98.7.6." in said) == (0, True), said
    assert version(clone.root) == "98.8.0.dev0"
    for document, number in DOCUMENTS.items():
        found = named(clone.root, document)
        assert len(found) == number, document
        assert set(found) <= {"98.8.0.dev0", "98.8.0~dev0"}
    assert "musicsvc_98.8.0~dev0_amd64.deb" in (clone.root / "docs/install.md").read_text("utf-8")
    assert clone.git("status", "--porcelain") == ""
    assert (tmp_path / "run").read_text().splitlines() == [
        "pip install --quiet --editable .[dev]",
        "python -m tests.releases.keep",
        "pip install --quiet --editable .[dev]",
    ]
    clone.git("checkout", "-q", "v98.7.6")
    assert version(clone.root) == "98.7.6"
    assert {each for document in DOCUMENTS for each in named(clone.root, document)} == {"98.7.6"}
    changes = (clone.root / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## \[Unreleased\]\n\n## \[98\.7\.6\] - \d{4}-\d\d-\d\d\n", changes, re.MULTILINE)


def test_a_release_needs_a_version_a_clean_folder_and_a_new_tag(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    for arguments in ((), ("98.7.6",), ("98.7", "98.8.0.dev0"), ("98.7.6", "98.8.0"), ("v98.7.6", "98.8.0.dev0")):
        code, said = clone.release(*arguments)
        assert (code, said.startswith("Usage: packaging/release ")) == (2, True), arguments
    clone.git("tag", "v98.7.6")
    assert clone.release("98.7.6", "98.8.0.dev0") == (2, "There is a tag v98.7.6 already.\n")
    (clone.root / "README.md").write_text("changed")
    assert clone.release("98.7.7", "98.8.0.dev0") == (2, "There are changes that are not committed.\n")
