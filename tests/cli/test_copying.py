"""`musicsvc db copy` and `musicsvc db compare`, to SQLite and back to the database of the run."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from peewee import BooleanField, Database, fn

from musicsvc.errors import Failure
from musicsvc.store import models, opening
from musicsvc.store.accounts import user_search
from musicsvc.store.activity.log import default_file
from musicsvc.store.copying import copy
from musicsvc.store.copying.databases import CopiedDatabase
from musicsvc.store.copying.tables import DERIVED, CopiedTable
from musicsvc.store.engine import name_index
from musicsvc.store.engine.sql import bound, fetch, is_sqlite, run
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, Genre, Play, Playlist, User
from tests.cli.conftest import Json, Run
from tests.support import databases, every_table
from tests.support.command import run_in_process

TABLES = [*map(CopiedTable, [*models.tables(), *models.LOG_TABLES])]
KEYS_ONLY = {table.name for table in TABLES if table.width == len(table.columns)}
CHECKS = """
    SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(conname)
    FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace
"""


@databases.prefilling
def prefilled(store: Store) -> None:
    """A database with rows in every table, of which each test has a copy."""
    store.write(every_table.fill).result()


@pytest.fixture
def source(prefilled: databases.Filled[None], store_url: str) -> str:  # noqa: ARG001 - `store_url` is a copy of it
    """Return the URL of a database with rows in every table and in its activity log."""
    every_table.fill_log(store_url)
    return store_url


@pytest.fixture
def elsewhere(tmp_path: Path) -> str:
    """Return the path of a SQLite file that does not exist."""
    return str(tmp_path / "made" / "copy.db")


@pytest.fixture
def ask(bare: Run) -> Json:
    """Return a function that runs a command with `--json` and returns its JSON value."""
    return lambda *arguments: json.loads(bare(*arguments, "--json").stdout)


@pytest.mark.on_both
@pytest.mark.slow
def test_a_copy_to_sqlite_and_back_equals_the_database(
    bare: Run,
    ask: Json,
    source: str,
    elsewhere: str,
    template: databases.Template,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    back = template.make(tmp_path, 7, migrated=False)
    done = bare("db", "copy", source, elsewhere)
    assert done.stderr.endswith("The copy is complete.\n")
    assert ask("db", "copy", elsewhere, back)["complete"]

    for one, other in ((source, elsewhere), (elsewhere, back), (back, source)):
        found = ask("db", "compare", one, other)
        assert (found["equal"], found["different"], found["differences"], found["problems"]) == (True, 0, [], [])
    counts = {each["table"]: each["from"]["rows"] for each in found["tables"]}
    assert min(counts.values()) > 0
    assert counts["activity"] == len(every_table.ODD)
    folder = Path(elsewhere).parent
    modes = {each.name: each.stat().st_mode & 0o777 for each in (folder, *folder.iterdir())}
    assert set(modes.values()) == {0o700, 0o600}
    assert {"copy.db", default_file(Path(elsewhere)).name, "ballast"} <= set(modes)
    assert all(found_names(source))
    for url in (f"sqlite:///{elsewhere}", back):
        assert found_names(url) == found_names(source)
        monkeypatch.setenv("MUSICSVC_DATABASE_URL", url)
        bare("db", "check")


def found_names(url: str) -> list[Any]:
    """Return what searches find in the database."""
    with opening.connect(url) as store:
        return [
            store.read(lambda: user_search.find("a", 50)).result(),
            store.read(lambda: name_index.ARTISTS.find("uni", 50)).result(),
            store.read(lambda: name_index.TRACKS.find("track 9", 99)).result(),
        ]


@pytest.mark.on_both
@pytest.mark.slow
def test_the_second_pass_copies_what_has_changed_since_the_first(
    bare: Run, ask: Json, source: str, elsewhere: str
) -> None:
    with opening.connect(source) as served:
        first = ask("db", "copy", source, elsewhere)
        assert (first["complete"], first["inserted"] > first["deleted"]) == (False, True)
        with pytest.raises(Failure, match="is an unfinished copy of"):
            opening.connect(f"sqlite:///{elsewhere}")
        served.write(change).result()
        again = bare("db", "copy", source, elsewhere)
        assert "Stop its server" in again.stderr
        served.write(change).result()

    last = ask("db", "copy", source, elsewhere)

    assert last["complete"]
    assert 0 < last["deleted"] < last["inserted"] + last["deleted"] < first["inserted"]
    assert ask("db", "compare", source, elsewhere)["equal"]
    assert "is not empty" in bare("db", "copy", source, elsewhere, expect=1).stderr
    opening.connect(f"sqlite:///{elsewhere}").close()


@pytest.mark.only_on("postgres")
@pytest.mark.slow
def test_a_copy_during_which_a_command_has_written_is_not_complete(
    source: str, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "BATCH_ROWS", 1_000)
    done: list[float] = []

    def write_once(rows: float, _total: float) -> None:
        if not done:
            done.append(rows)
            with opening.connect(source) as store:
                store.write(change).result()

    for complete in (False, True):
        with copy.connect(source) as opened:
            assert copy.copy(opened, f"sqlite:///{elsewhere}", on_progress=write_once).complete is complete


@pytest.mark.only_on("postgres")
def test_a_copy_touches_no_tables_of_other_programs(store_url: str) -> None:
    with copy.connect(store_url) as opened, bound(opened.main):
        run("CREATE TABLE other (id INTEGER PRIMARY KEY REFERENCES other)")
        run("CREATE TRIGGER other AFTER INSERT ON other EXECUTE FUNCTION suppress_redundant_updates_trigger()")

        suspended = opened.loosen()

    assert "track_artist" in suspended
    assert "other" not in suspended


def change() -> None:
    """Add, change and delete rows; two accounts swap values of a unique column, and an artist goes with its rows."""
    one, other = User.select().order_by(User.id).limit(2)
    for user, key in ((one, "nobody"), (other, one.email_key), (one, other.email_key)):
        User.update(email_key=key).where(User.id == user.id).execute()
    Artist.delete().where(Artist.id == Artist.select(fn.MIN(Artist.id))).execute()
    for name in ("kept", "newest"):
        Genre.insert(name=f"{name} {Genre.select().count()}", display_name=name).execute()
    Genre.delete().where(Genre.display_name == "newest").execute()
    Play.delete().where(Play.track == Play.select(fn.MIN(Play.track))).execute()
    Playlist.update(created_at=Playlist.created_at + 1).execute()


@pytest.mark.slow
def test_compare_finds_one_changed_value_in_every_table(bare: Run, source: str, elsewhere: str) -> None:
    bare("db", "copy", source, elsewhere)
    with copy.connect(source, writes=True) as opened:
        with bound(opened.main):
            allow_anything(opened)
        expected = {table.name: damage(table, opened.database(table)) for table in TABLES}

    done = run_in_process(["db", "compare", elsewhere, source, "--json"])

    assert done.returncode == 1
    found = json.loads(done.stdout)
    derived = {CopiedTable(model).name for model in DERIVED}
    different = {each["table"]: each["different"] for each in found["tables"]}
    assert different == {name: 1 + (name in KEYS_ONLY) for name in expected if name not in derived} | {"next ids": 0}
    assert f"differ in {sum(different.values())} rows, of which 20 are named" in done.stderr
    named = {each["table"]: (each["key"], each["columns"]) for each in found["differences"] if not each["only_in"]}
    assert len(found["differences"]) == 20
    assert named
    assert {name: expected[name] for name in named} == named
    assert sorted(line.partition(" of ")[0] for line in found["problems"]) == [
        "to: counts: a block",
        "to: counts: the tracks",
    ]
    text = run_in_process(["db", "compare", elsewhere, source])
    assert (text.returncode, text.stderr) == (1, done.stderr)
    assert "track: id " in text.stdout


def allow_anything(opened: CopiedDatabase) -> None:
    """Let the rows of the current database break its rules."""
    if is_sqlite():
        fetch("PRAGMA ignore_check_constraints = ON")
        return
    opened.loosen()
    for (statement,) in fetch(CHECKS):
        run(statement)


def damage(table: CopiedTable, database: Database | None) -> tuple[dict[str, Any], list[str]]:
    """Change the last column of a row by one bit or character. Return the key of the row, and the column."""
    assert database is not None
    rows = list(table.rows(database))
    row = rows[len(rows) // 2]
    column, value = table.columns[-1], changed(table, row[-1])
    key = dict(zip(table.columns[: table.width], row, strict=False))
    where = " AND ".join(f'"{name}" = ?' for name in key)
    with bound(database):
        run(f'UPDATE "{table.name}" SET "{column}" = ? WHERE {where}', value, *key.values())
    shown = {name: each.hex() if isinstance(each, bytes) else each for name, each in key.items()}
    return shown, [column]


def changed(table: CopiedTable, value: Any) -> Any:
    """Return another value for the last column of the table."""
    if value is None:
        return "x" if table.types[-1] == "text" else 1
    if isinstance(value, bytes):
        return value[:-1] + bytes([(value or b"\x02")[-1] ^ 1])
    if isinstance(value, str):
        return value[:-1] + ("y" if value.endswith("x") else "x")
    is_flag = isinstance(getattr(table.model, table.fields[-1]), BooleanField)
    return value == 0 if is_flag else value ^ (1 << 20)


def test_a_password_is_read_from_a_file_and_refused_in_an_argument(bare: Run, elsewhere: str, tmp_path: Path) -> None:
    url = "postgresql://ann:secret@127.0.0.1:1/music"
    refused = run_in_process(["db", "copy", url, elsewhere])
    assert (refused.returncode, "PGPASSFILE" in refused.stderr, "secret" in refused.stderr) == (2, True, False)

    file = tmp_path / "url"
    file.write_text(f"{url}\n")

    done = bare("db", "copy", f"@{file}", elsewhere, expect=1)
    assert "Connection refused" in done.stderr
    assert "secret" not in done.stderr

    for content, fault in ((None, "does not exist"), ("\n", "is empty"), (f"{url}\n{url}\n", "only line")):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_text(content)
        wrong = bare("db", "copy", f"@{file}", elsewhere, expect=2)
        assert (fault in wrong.stderr, "secret" in wrong.stderr) == (True, False), wrong.stderr


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///.", "sqlite:///:memory:"])
def test_an_address_without_a_file_is_wrong_usage(bare: Run, tmp_path: Path, url: str) -> None:
    for line in (("db", "copy", url, "b.db"), ("db", "compare", str(tmp_path / "a.db"), url)):
        assert f"{url!r} does not name a file; write sqlite:////path/to/file.db.\n" in bare(*line, expect=2).stderr


@pytest.mark.slow
def test_a_target_that_is_in_use_or_another_copy_is_refused(
    bare: Run, source: str, elsewhere: str, tmp_path: Path
) -> None:
    bare("init")  # has a secret of its own
    other = f"sqlite:///{tmp_path / 'folder' / 'musicsvc.db'}"
    with opening.connect(source):
        bare("db", "copy", source, elsewhere)
    assert "unfinished copy of another database" in bare("db", "copy", other, elsewhere, expect=1).stderr
    with closing(apsw.Connection(elsewhere)) as begun:  # by an older program
        begun.execute("DELETE FROM schema_migration WHERE name = (SELECT max(name) FROM schema_migration)")
    for line in (("db", "copy", source, elsewhere), ("db", "compare", source, elsewhere)):
        assert "begun by an older musicsvc. Delete it" in bare(*line, expect=1).stderr
    with opening.connect(other) as served:
        served.read(lambda: fetch("SELECT 1")).result()
        assert "is in use" in bare("db", "copy", source, other, expect=1).stderr
    assert "same database" in bare("db", "copy", elsewhere, elsewhere, expect=1).stderr
    link, backup = tmp_path / "link.db", tmp_path / "backup.db"
    link.symlink_to(elsewhere)
    assert "same database" in bare("db", "copy", elsewhere, str(link), expect=1).stderr
    bare("user", "create", "ann@label.test")
    bare("db", "backup", str(backup))  # a file without an activity log
    assert "is not empty" in bare("db", "copy", source, str(backup), expect=1).stderr
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(("link-", "link.db.", "backup-"))]
    assert "There is no database" in bare("db", "copy", f"{elsewhere}.not", elsewhere, expect=1).stderr
    assert "unfinished copy" in bare("db", "compare", source, elsewhere, expect=1).stderr
