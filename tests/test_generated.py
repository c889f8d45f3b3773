"""The files of docs/ that are made from the code agree with it."""

import json
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import pytest

from musicsvc.cli import reference
from musicsvc.server.openapi import document as openapi
from musicsvc.server.openapi import listing
from tests.support import notation_table

DOCS = Path(__file__).resolve().parents[1] / "docs"


def _document() -> str:
    return json.dumps(openapi.document(), ensure_ascii=False, indent=2) + "\n"


GENERATED: dict[str, Callable[[], str]] = {
    "cli.md": reference.markdown,
    "endpoints.md": listing.markdown,
    "openapi.json": _document,
}


@pytest.mark.parametrize("file", GENERATED)
def test_the_file_is_what_the_code_makes(file: str) -> None:
    made, written = GENERATED[file]().splitlines(), (DOCS / file).read_text("utf-8").splitlines()
    # The first lines that differ; pytest would compare thousands of lines, which takes minutes.
    differs = next((pair for pair in zip_longest(made, written) if pair[0] != pair[1]), None)
    assert differs is None, f"run: docs/generate (docs/{file})"


def test_the_documentation_lists_all_notations_of_cells() -> None:
    documented = (DOCS / "import.md").read_text("utf-8").splitlines()
    missing = [line for line in notation_table.table().splitlines() if line not in documented]
    assert missing == [], "write what notation_table.table() returns into docs/import.md, Durations and dates"
