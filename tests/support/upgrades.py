"""Made next versions of the schema, databases of other versions, and upgrades in a process that can be killed."""

import shutil
import subprocess
import sys
from pathlib import Path

from musicsvc.store import opening
from musicsvc.store.engine.sql import run
from musicsvc.store.schema import history, schema
from tests.support import preloaded

# A table that is filled from rows, with progress; then another one in place of a table, and a column. Programs of now
# may use the first schema, but not the second.
NEXT = {
    "9001_moods": """
from musicsvc.store.schema import schema

oldest_program = "0.1.0"

def up(migrator, db):
    db.execute_sql("CREATE TABLE mood (track_id BIGINT PRIMARY KEY, name TEXT NOT NULL)")
    tracks = db.execute_sql("SELECT id FROM track ORDER BY id").fetchall()
    for done, (track,) in enumerate(tracks):
        schema.report_progress(done, len(tracks))
        db.execute_sql(f"INSERT INTO mood (track_id, name) VALUES ({track}, 'mood of {track}')")
""",
    "9002_moods_of_albums": """
oldest_program = "9.2.0"

def up(migrator, db):
    db.execute_sql("CREATE TABLE mood_new (track_id BIGINT PRIMARY KEY, name TEXT NOT NULL, album_id BIGINT)")
    db.execute_sql("INSERT INTO mood_new SELECT mood.track_id, mood.name, track.album_id FROM mood, track"
                   " WHERE track.id = mood.track_id")
    db.execute_sql("DROP TABLE mood")
    db.execute_sql("ALTER TABLE mood_new RENAME TO mood")
    db.execute_sql("ALTER TABLE album ADD COLUMN mood TEXT")
    db.execute_sql("UPDATE album SET mood = 'mood of ' || name")
""",
}
MOODS = "SELECT track_id, name, album_id FROM mood ORDER BY track_id"
ALBUM_MOODS = "SELECT name, mood FROM album ORDER BY id"
UPGRADE = """
import os, signal, sys, peewee
from pathlib import Path
from musicsvc.store.engine.sqlite.files import SqliteDatabase
from musicsvc.store.schema import history, schema
url, folder, statements = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
def counting(execute):
    def count(database, sql, params=None):
        global statements
        cursor = execute(database, sql, params)
        statements -= 1
        if statements == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return cursor
    return count
for kind in (SqliteDatabase, peewee.Database):
    kind.execute_sql = counting(kind.execute_sql)
sys.stdin.readline()
print(*schema.upgrade(url, folder=folder), flush=True)
"""


def make_next(folder: Path, made: dict[str, str] = NEXT, *, like: Path = history.MIGRATIONS) -> Path:
    """Create a folder with the migrations of the folder `like` and `made` ones; return it."""
    folder.mkdir()
    for name in history.available(like):
        shutil.copy(like / f"{name}.py", folder)
    for name, text in made.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def make_older(url: str) -> None:
    """Give the database the history of a commit before version 0.1.0."""

    def rename() -> None:
        run(f"DELETE FROM {schema.HISTORY}")
        run(f"INSERT INTO {schema.HISTORY} (name, oldest_program) VALUES ('0001_catalog', '0.1.0')")

    with opening.open_unchecked(url) as store:
        store.write(rename).result()


def start(url: str, folder: Path) -> "subprocess.Popen[str]":
    """Start an upgrade that waits for a line."""
    command = [sys.executable, "-c", UPGRADE, url, str(folder), "0"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def kill(url: str, folder: Path, after: int) -> int:
    """Upgrade in a process that is killed after this many statements, unless it ends before; return its exit code."""
    return preloaded.start(["-c", UPGRADE, url, str(folder), str(after)]).wait(60)
