"""An import of plays that is undone while it runs stops and leaves nothing."""

from pathlib import Path

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.conftest import NOW
from tests.support.undoing import dump, undone


@pytest.mark.usefixtures("world")
def test_an_import_of_plays_that_is_undone_while_it_runs_stops(store: Store, tmp_path: Path) -> None:
    before = dump(store)
    file = tmp_path / "plays.jsonl"
    row = '{"played_at":%d,"track":"Undone","artist":"Cleo"}\n'
    file.write_text("".join(row % (1_400_000_000 + 60 * at) for at in range(Plays.rows_a_unit + 1)))

    def stop(summary: ImportSummary) -> None:
        if summary.rows == Plays.rows_a_unit:
            undone(store, summary.run)

    options = Plays(ImportOptions(listener="me", create_missing=True))
    with histories.open_file(file, "jsonl") as reader, pytest.raises(Failure, match="was undone while it ran"):
        runner.run(store, reader, options, now=NOW, on_progress=stop)
    assert dump(store) == before
