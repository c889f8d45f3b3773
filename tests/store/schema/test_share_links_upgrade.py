"""The upgrade of a database with share links: they work as before, on the same days, and no program reads them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from musicsvc.errors import NotFound
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.dashboards import report_links
from musicsvc.store.engine.sql import run
from musicsvc.store.models import Artist
from musicsvc.store.plays.subjects import ARTIST, Subject
from musicsvc.store.schema import history, schema
from tests.conftest import NOW

LINK = """
    INSERT INTO report_link (id, user_id, kind, first_day, end_day, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""


def test_links_of_before_work_and_are_not_for_programs(new_database: Callable[..., str], tmp_path: Path) -> None:
    url, former = new_database(migrated=False), tmp_path / "former"
    former.mkdir()
    (added,) = (name for name in history.available() if name.endswith("_share_links"))
    for name in history.available():
        if name < added:
            shutil.copy(history.MIGRATIONS / f"{name}.py", former)
    schema.upgrade(url, folder=former)
    with opening.open_unchecked(url) as store:
        artist = store.write(_fill).result()
    assert added in schema.upgrade(url)
    with opening.connect(url) as store:
        shared = store.read(lambda: report_links.open(7, NOW, now=NOW)).result()
        assert (shared.subjects, shared.window[1:3]) == ((Subject(ARTIST, artist),), (19_000, 19_031))
        assert shared.moving is None
        (row,) = store.read(lambda: report_links.list(1, now=NOW)).result()
        assert (row.names, row.moving, row.programs) == (("Ann",), None, False)
        with pytest.raises(NotFound, match="lets no program read it"):
            store.read(lambda: report_links.open(7, NOW, now=NOW, program=True)).result()
        assert store.read(schema.problems).result() == []


def _fill() -> int:
    """Store a link as programs of before do, and return the id of its artist."""
    user = users.create("ann@label.test", now=NOW)
    artist: int = Artist.create(name="Ann", manager=user.id, created_at=NOW).id
    run(LINK, 7, user.id, ARTIST, 19_000, 19_031, NOW, NOW + 1)
    run("INSERT INTO report_link_subject (report_link_id, position, subject) VALUES (7, 0, ?)", artist)
    return artist
