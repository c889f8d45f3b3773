"""`musicsvc import list` and `import undo`: what is kept, what cannot be undone, and an undo that is killed."""

import signal
from pathlib import Path

import pytest

from musicsvc.store.engine.store import Store
from musicsvc.store.models import ImportRun, Track
from tests.cli.conftest import Json, Run
from tests.cli.test_terminal import Terminal
from tests.support import label_files
from tests.support.label_files import write
from tests.support.program import Program, until

LABEL = "label@label.test"


def test_an_undo_lists_what_it_will_do_and_asks_on_a_terminal(run: Run, ask: Json, tmp_path: Path) -> None:
    terminal = Terminal()
    run("user", "create", LABEL)
    ask("import", "catalog", write(tmp_path / "songs.csv", label_files.catalog()), "--user", LABEL)
    ask("import", "plays", write(tmp_path / "plays.csv", label_files.plays_of_others(50)), "--user", LABEL)
    later = [row | {"track_number": 20 + at} for at, row in enumerate(label_files.catalog()[:3])]
    ask("import", "catalog", write(tmp_path / "more.csv", later), "--user", LABEL)
    before = ask("import", "list")
    listed = "Import 1 (catalog, songs.csv) will be undone.\nDeletes: 5 tracks.\nKeeps tracks (plays, import 3): 1.\n"
    shown = terminal.run("import", "undo", "1", answers={"Undo import 1? [y/N]: ": "n\n"}, expect=1)
    assert listed in shown
    assert ask("import", "list") == before
    shown = terminal.run("import", "undo", "3", answers={"Undo import 3? [y/N]: ": "n\n"}, expect=1)
    assert "Deletes: nothing.\nRestores earlier values of: 3 tracks.\n" in shown
    shown = terminal.run("import", "undo", "2", answers={"Undo import 2? [y/N]: ": "y\n"})
    assert "Deletes: 34 plays.\n" in shown
    assert "Import 2 is undone: 34 rows taken back." in shown
    assert "Undo import" not in run("import", "undo", "3", "--yes").stderr
    terminal.close()


@pytest.mark.slow
def test_an_undo_that_is_killed_is_continued_by_the_next(run: Run, ask: Json, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    file.write_text("track,artist,genre\n" + "".join(f"S{at},A{at % 97},g{at % 7}\n" for at in range(6_000)))
    assert ask("import", "catalog", str(file))["tracks"]["new"] == 6_000

    def tracks() -> int:
        return store.read(Track.select().count).result()

    with Program(tmp_path, "import", "undo", "1") as program:
        until(lambda: tracks() < 6_000)
        program.end(signal.SIGKILL)
    assert 0 < tracks() < 6_000
    assert store.read(lambda: ImportRun.get_by_id(1).state).result() == "undoing"
    assert run("db", "check").stderr.endswith("No problems found.\n")
    assert ask("import", "undo", "1")["import"]["state"] == "undone"
    assert [ask("import", "list")[0][name] for name in ("state", "rows")] == ["undone", 6_000]
    assert tracks() == 0
    assert run("db", "check").stderr.endswith("No problems found.\n")
