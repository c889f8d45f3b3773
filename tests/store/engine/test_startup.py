"""A store that is not what it should be is refused with one line and the way out, and is left as it is."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import apsw
import pytest

import musicsvc
from musicsvc.errors import Failure
from musicsvc.store import opening
from musicsvc.store.engine import sql
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.url import describe
from musicsvc.store.models import Genre, Tag
from musicsvc.store.schema import schema
from tests.support import upgrades

LOCKS = (".migrating", ".in-use")
sqlite = pytest.mark.only_on("sqlite")


@pytest.fixture
def file(store_url: str) -> Path:
    """A closed database with a few hundred rows."""
    with opening.connect(store_url) as store:
        store.write(_fill).result()
    return Path(store_url.removeprefix("sqlite:///"))


def _fill() -> None:
    for number in range(300):
        Genre.insert(name=f"{number:040}", display_name="x").execute()
        Tag.insert(name=f"{number:040}").execute()


def _content(file: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in file.parent.iterdir() if not path.name.endswith(LOCKS)}


def _refusals(url: str) -> Iterator[str]:
    """Yield the messages of `serve` and `db upgrade`."""
    for attempt in (opening.connect, schema.upgrade):
        with pytest.raises(Failure) as refusal:
            attempt(url)
        yield refusal.value.message


@sqlite
def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "none" / "musicsvc.db"

    for message in _refusals(f"sqlite:///{path}"):
        assert message == f"There is no database at {path}. Run: musicsvc init"
    assert not path.parent.exists()


def _middle(content: bytes) -> bytes:
    at = len(content) // 2 // 4096 * 4096
    return content[:at] + b"\xa5" * 4096 + content[at + 4096 :]


@sqlite
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda content: content[:0], "is empty"),
        (lambda content: content[:50], "is damaged"),
        (lambda content: content[:100], "is damaged|is cut short"),
        (lambda content: content[: len(content) // 2], "is damaged|is cut short"),
        (lambda content: content[:-4096], "is damaged|is cut short"),
        (lambda content: content[:-1], "is damaged|is cut short"),
        (_middle, "is damaged"),
        (lambda content: content[:16] + b"\xff" * 8 + content[24:], "is damaged"),
        (lambda content: b"PK\x03\x04" + content[4:], "is not a SQLite database"),
        (lambda _: b"a note\n" * 1000, "is not a SQLite database"),
        (lambda content: content[:68] + b"\0\0\0\1" + content[72:], "belongs to another program"),
    ],
    ids=["zero", "stub", "header", "half", "a-page-less", "a-byte-less", "middle", "sizes", "magic", "text", "foreign"],
)
def test_a_damaged_file_is_refused_and_not_changed(file: Path, spoil: Callable[[bytes], bytes], says: str) -> None:
    file.write_bytes(spoil(file.read_bytes()))
    before = _content(file)

    for message in _refusals(f"sqlite:///{file}"):
        assert re.search(says, message)
        assert str(file) in message
        assert re.search(r"musicsvc init|elsewhere", message)
        assert "\n" not in message
    files.create(file)
    assert _content(file) == before


@sqlite
@pytest.mark.parametrize(
    ("code", "refused"),
    [(errno.EIO, True), (errno.ENOSPC, True), (errno.EINVAL, False), (errno.EBADF, False), (errno.ENOTSUP, False)],
)
def test_a_folder_that_cannot_be_synced_is_a_failure_unless_its_file_system_never_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, *, refused: bool
) -> None:
    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=os.strerror(code)) if refused else nullcontext():
        files.sync_folder(tmp_path)


@sqlite
@pytest.mark.parametrize("spoilt", [b"\xa5" * 512, b"\xa5" * 4096], ids=["a sector", "a page"])
def test_a_torn_first_page_is_restored_from_the_wal(store_url: str, tmp_path: Path, spoilt: bytes) -> None:
    """The power failed during a checkpoint; the WAL has the whole page."""
    with opening.connect(store_url) as store:
        store.write(_fill).result()
        live, after = Path(store_url.removeprefix("sqlite:///")), tmp_path / "after" / "musicsvc.db"
        after.parent.mkdir()
        for suffix in ("", "-wal"):
            after.with_name(after.name + suffix).write_bytes(live.with_name(live.name + suffix).read_bytes())
    after.write_bytes(spoilt + after.read_bytes()[len(spoilt) :])

    with opening.connect(f"sqlite:///{after}") as store:
        assert store.read(lambda: Tag.select().count()).result() == 300
        assert store.read(schema.problems).result() == []


@sqlite
def test_a_foreign_database_with_a_wal_is_not_checkpointed(tmp_path: Path) -> None:
    origin, path = tmp_path / "origin.db", tmp_path / "data" / "musicsvc.db"
    path.parent.mkdir()
    connection = apsw.Connection(str(origin))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    for suffix in ("", "-wal"):
        (path.parent / f"{path.name}{suffix}").write_bytes((tmp_path / f"origin.db{suffix}").read_bytes())
    connection.close()
    before = _content(path)

    for message in _refusals(f"sqlite:///{path}"):
        assert "another program" in message or "is not a SQLite" in message or "is damaged" in message
    assert _content(path) == before


@sqlite
def test_a_folder_at_the_path_of_the_database_is_refused(tmp_path: Path) -> None:
    for message in _refusals(f"sqlite:///{tmp_path}"):
        assert str(tmp_path) in message
        assert "\n" not in message


def test_a_database_of_a_newer_version_is_refused(store_url: str) -> None:
    _sql(store_url, "INSERT INTO schema_migration (name, oldest_program) VALUES ('9999_later', '9.9.0')")

    for message in _refusals(store_url):
        assert message == (
            f"{describe(store_url)} needs musicsvc 9.9.0 or newer, and this is {musicsvc.__version__}:"
            " install that version, or restore a backup of before the upgrade."
        )


def test_a_database_is_described_by_its_file_or_its_address_without_the_password() -> None:
    assert describe("sqlite:////var/lib/musicsvc.db") == "The database /var/lib/musicsvc.db"
    assert describe("postgresql://ada:s3cret@db/x") == "The database postgresql://ada:***@db/x"


@sqlite
def test_a_file_to_which_another_process_begins_to_write_is_not_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    files.create(path)
    writer = apsw.Connection(str(path))
    writer.pragma("journal_mode", "wal")
    writer.pragma("wal_autocheckpoint", 0)
    writer.execute("CREATE TABLE growing (value TEXT); INSERT INTO growing VALUES (zeroblob(20000))")
    assert files._probe(path, pending=False) == files.APPLICATION_ID
    writer.close()


def test_a_database_of_an_older_version_is_refused_with_the_command_to_run(store_url: str, tmp_path: Path) -> None:
    with pytest.raises(
        Failure,
        match=rf"^{re.escape(describe(store_url))} is of an older schema \(.*\)\. Run: musicsvc db upgrade$",
    ):
        opening.connect(store_url, upgrades.make_next(tmp_path / "next"))


def test_a_database_of_before_the_first_version_is_refused_in_one_sentence(store_url: str) -> None:
    upgrades.make_older(store_url)

    for message in _refusals(store_url):
        assert message == (
            f"{describe(store_url)} was written before version 0.1.0 and cannot be upgraded:"
            " move it away, run musicsvc init, and import your files again."
        )


def test_a_database_without_tables_is_refused_with_the_command_to_run(new_database: Callable[..., str]) -> None:
    url = new_database(migrated=False)
    with pytest.raises(Failure, match=rf"^{re.escape(describe(url))} has no tables yet\. Run: musicsvc init$"):
        opening.connect(url)


@pytest.mark.parametrize("url", ["", "mysql://localhost/x", "musicsvc.db", "sqlite:musicsvc.db"])
def test_an_address_of_another_database_system_is_refused(url: str) -> None:
    with pytest.raises(Failure, match=r"must start with sqlite:/// or postgresql://"):
        opening.connect(url)


def _sql(url: str, statement: str) -> None:
    with opening.open_unchecked(url) as store:
        store.write(lambda: sql.current().execute_sql(statement) and None).result()
