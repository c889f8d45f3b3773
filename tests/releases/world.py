"""A world with rows in every table, which the kept database of a release contains. It is the same on both databases."""

from functools import partial
from pathlib import Path
from typing import Any

from musicsvc.clock import MovableClock, parse
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.dashboards import report_links
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sql import run
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks import queue
from musicsvc.store.models import Artist, PasswordLink, Session, Token, Track, TrackArtist
from musicsvc.store.plays.periods import Window, day_of
from musicsvc.store.plays.subjects import KINDS, Subject
from musicsvc.store.schema import schema
from musicsvc.store.security import sessions
from musicsvc.store.seeding import fixtures
from tests.support import label_files
from tests.support.command import run_in_process

NOW = parse("2026-11-26T12:00:00Z")
TOKEN = "msvc_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd2HZ8xH"
LABEL = fixtures.DEMO_EMAIL
PLAYS, STRANGERS = 900, 90
LONG_LIST = 4_100  # tracks of an artist
FIRST_SONG = 19  # the id of the first track after those of the fixtures
TOGETHER = [  # plays of two tracks by one listener in the same half minute, of which a merge drops one
    {"track_id": FIRST_SONG + at, "listener": "twin", "played_at": "2024-10-09T08:00:00Z", "client_id": f"twin-{at}"}
    for at in (2, 3)
]


def make(url: str, folder: Path) -> None:
    """Fill the new database at `url`, which MUSICSVC_DATABASE_URL names. `folder` is for the imported files."""
    clock = MovableClock(NOW, speed=0)

    def musicsvc(*arguments: str) -> None:
        done = run_in_process(arguments, clock=clock)
        assert done.returncode == 0, done

    with opening.connect(url) as store:
        store.write(lambda: run("UPDATE secret SET value = ?", bytes(range(32)))).result()
        store.write(lambda: fixtures.load(now=NOW, values={"demo": TOKEN})).result()
        store.write(lambda: run("UPDATE token SET last_used_at = ?", NOW)).result()  # a server then notes no use
    for kind, name, rows, more in _files():
        musicsvc("import", kind, label_files.write(folder / name, rows), "--manager", LABEL, *more)
    musicsvc("import", "undo", "3", "--yes")
    musicsvc("track", "merge", str(FIRST_SONG + 3), str(FIRST_SONG + 2), "--yes")
    musicsvc("track", "delete", str(FIRST_SONG + 8), "--yes")
    with opening.connect(url) as store:
        _add_what_pages_make(store)
        store.write(_add_long_list).result()
    musicsvc("db", "recount")  # so that the long lists are counted in blocks
    with opening.connect(url) as store:
        store.write(_replace_random).result()


def _files() -> list[tuple[str, str, label_files.Rows, tuple[str, ...]]]:
    """Return the kind, the name, the rows and the options of each import."""
    return [
        ("catalog", "catalog.csv", label_files.catalog(), ()),
        ("plays", "plays.csv", label_files.plays(PLAYS), ()),
        ("plays", "strangers.csv", label_files.plays_of_others(STRANGERS), ("--create-missing",)),
        ("plays", "together.csv", TOGETHER, ()),
    ]


def _add_what_pages_make(store: Store) -> None:
    def do(unit: Any, *arguments: Any, **more: Any) -> None:
        store.write(partial(unit, *arguments, **more)).result()

    demo = store.read(lambda: users.by_email(LABEL)).result()
    today = day_of(NOW)
    tracks = [Subject(KINDS["track"], 1), Subject(KINDS["track"], 2)]
    do(report_links.create, tracks, Window("", today - 30, today), user_id=demo.id, now=NOW)
    do(api_access.request, "new@label.test", "Charts for the label's site.", "100 a day", "Blue", now=NOW)
    do(password_links.create, demo, now=NOW)
    do(sessions.create, demo, address="127.0.0.1", agent="a browser", now=NOW)
    do(queue.create, demo.id, "plays", "more.csv", "1", "here", NOW)


def _add_long_list() -> None:
    artist = Artist.create(name="Prolific", manager=users.by_email(LABEL).id, created_at=NOW).id
    rows = [(at, f"Take {number}", 1_000, NOW) for number, at in enumerate(bulk.ids(Track, LONG_LIST))]
    bulk.insert(Track, ("id", "name", "duration", "created_at"), rows)
    bulk.insert(TrackArtist, ("track", "artist", "position"), [(row[0], artist, 0) for row in rows])


def _replace_random() -> None:
    """Give what is random, or of the time of this run, fixed values, so that a release is kept in the same bytes."""
    run(f"UPDATE {schema.HISTORY} SET applied = ?", "2026-11-26 12:00:00")
    for token in list(Token.select(Token.id).where(Token.digest != tokens.digest(TOKEN))):
        Token.update(digest=bytes([token.id]) * 32, last_four="abcd").where(Token.id == token.id).execute()
    run("UPDATE change_epoch SET value = ?", bytes(16))
    for table in (Session, PasswordLink):
        table.update(digest=bytes(32)).execute()
