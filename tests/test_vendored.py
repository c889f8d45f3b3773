"""What others wrote and we carry along is what it says it is."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

import musicsvc

ROOT = Path(musicsvc.__file__).parent
LISTS = sorted(ROOT.rglob("VENDORED.toml"))


@pytest.mark.parametrize("listing", LISTS, ids=lambda listing: str(listing.parent.relative_to(ROOT)))
def test_vendored_files_are_those_that_are_listed(listing: Path) -> None:
    said = tomllib.loads(listing.read_text("utf-8"))
    assert said["name"]
    assert said["version"]
    assert said["licence"]
    assert any(name.startswith("LICENSE") for name in said["files"])
    for name, digest in said["files"].items():
        assert hashlib.sha256((listing.parent / name).read_bytes()).hexdigest() == digest, name


def test_something_is_listed() -> None:
    assert LISTS
