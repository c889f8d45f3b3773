"""Ctrl+C during an import: the number of rows imported, and a second run that completes it."""

import re
import signal
from pathlib import Path

import pytest

from musicsvc.cli import import_run
from musicsvc.cli.session import Session
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.files.records import Reader
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary, Progress
from musicsvc.store.models import Track
from tests.cli.conftest import Json
from tests.support.program import Program, until

ROWS, AT_ONCE = 17_000, 5_000  # at once: in one transaction
AGAIN = "Run the same command again to continue; imported rows are not added twice."
UNDO = "To take them back: musicsvc import undo 7"


@pytest.fixture
def songs(tmp_path: Path) -> str:
    file = tmp_path / "songs.csv"
    file.write_text("track;artist\n" + "".join(f"S{number};A{number % 97}\n" for number in range(ROWS)))
    return str(file)


@pytest.mark.slow
def test_an_interrupt_says_how_many_rows_are_in_and_a_second_run_adds_the_rest(
    ask: Json, store: Store, tmp_path: Path, songs: str
) -> None:
    def tracks() -> int:
        return store.read(Track.select().count).result()

    with Program(tmp_path, "import", "catalog", songs) as program:
        until(lambda: tracks() > AT_ONCE)  # so that the first transaction was told
        assert program.end(signal.SIGINT) == 130
        said, printed = program.err, program.out

    assert printed == ""
    match = re.fullmatch(
        r"Interrupted\. At least the first ([\d,]+) rows were imported\. Run the same command again .*\n", said
    )
    assert match, said
    rows_in = int(match[1].replace(",", ""))
    assert 0 <= tracks() - rows_in <= AT_ONCE  # those of a transaction that has just been committed are not told
    assert 0 < rows_in < ROWS
    (listed,) = ask("import", "list")
    assert (listed["state"], listed["rows"], listed["counts"]["tracks"]["new"]) == ("stopped", tracks(), tracks())
    done = ask("import", "catalog", songs)["tracks"]
    assert (done["new"] + done["repeated"], tracks()) == (ROWS, ROWS)

    undo = ("import", "undo", "2", "--yes")
    with Program(tmp_path, *undo) as program:
        until(lambda: tracks() < ROWS)
        assert program.end(signal.SIGINT) == 130
        told = "Interrupted. Part of import 2 may be undone. Run the same command again to continue.\n"
        assert (program.err, program.out) == (told, "")
    assert ask(*undo)["tracks"]["taken_back"] < done["new"] == ROWS - tracks()


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (None, f"Interrupted. The first rows may have been imported. {AGAIN}"),
        (
            ImportSummary(dry_run=False, run=7),
            f"Interrupted. The first rows may have been imported. {AGAIN} {UNDO}",
        ),
        (
            ImportSummary(dry_run=False, rows=1_500, run=7),
            f"Interrupted. At least the first 1,500 rows were imported. {AGAIN} {UNDO}",
        ),
        (ImportSummary(dry_run=True, rows=1_500), "Interrupted. Nothing was written (--dry-run)."),
    ],
)
def test_an_interrupt_says_what_was_imported_and_how_to_continue(
    songs: str, capsys: pytest.CaptureFixture[str], progress: ImportSummary | None, said: str
) -> None:
    def work(_store: Store, _reader: Reader, *, on_progress: Progress) -> ImportSummary:
        if progress is not None:
            on_progress(progress)
        raise KeyboardInterrupt

    file = Path(songs)
    options = import_run.RunOptions(file, refused=None, chosen=ImportOptions())
    with pytest.raises(KeyboardInterrupt):
        import_run.run(Session(), options, readers.open_file, work)
    assert capsys.readouterr().err == f"{said}\n"
