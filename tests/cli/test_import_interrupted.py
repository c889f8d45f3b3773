"""Ctrl+C during an import: the number of rows imported, and a second run that completes it."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

import pytest

from musicsvc.store.models import Track
from tests.support.program import Program, until

if TYPE_CHECKING:
    from pathlib import Path

    from musicsvc.store.engine.store import Store
    from tests.cli.conftest import Json

ROWS = 12_000


@pytest.fixture
def songs(tmp_path: Path) -> str:
    file = tmp_path / "songs.csv"
    file.write_text("track;artist\n" + "".join(f"S{number};A{number % 97}\n" for number in range(ROWS)))
    return str(file)


def test_an_interrupt_says_how_many_rows_are_in_and_a_second_run_adds_the_rest(
    ask: Json, store: Store, tmp_path: Path, songs: str
) -> None:
    def tracks() -> int:
        return store.read(Track.select().count).result()

    with Program(tmp_path, "import", "catalog", songs) as program:
        until(lambda: tracks() > 1_000)
        assert program.end(signal.SIGINT) == 130
        said, printed = program.err, program.out

    assert printed == ""
    match = re.fullmatch(
        r"Interrupted\. At least the first ([\d,]+) rows were imported\. Run the same command again .*\n", said
    )
    assert match, said
    rows_in = int(match[1].replace(",", ""))
    assert 0 <= tracks() - rows_in <= 500
    assert 0 < rows_in < ROWS
    done = ask("import", "catalog", songs)["tracks"]
    assert (done["new"] + done["repeated"], tracks()) == (ROWS, ROWS)
