"""Vendored files match the checksums of their lists."""

import hashlib
import tomllib
from pathlib import Path

import pytest

import musicsvc

ROOT = Path(musicsvc.__file__).parent
LISTS = sorted(ROOT.rglob("VENDORED.toml"))


@pytest.mark.parametrize("listing", LISTS, ids=lambda listing: str(listing.parent.relative_to(ROOT)))
def test_vendored_files_match_their_checksums(listing: Path) -> None:
    listed = tomllib.loads(listing.read_text("utf-8"))
    assert listed["name"]
    assert listed["version"]
    assert listed["licence"]
    assert any(name.startswith("LICENSE") for name in listed["files"])
    for name, digest in listed["files"].items():
        assert hashlib.sha256((listing.parent / name).read_bytes()).hexdigest() == digest, name


def test_something_is_listed() -> None:
    assert LISTS
