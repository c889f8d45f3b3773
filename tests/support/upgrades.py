"""Databases of earlier schemas on both stores, and upgrades in a separate process that can be killed."""

import subprocess
import sys

from playhouse.migrations import Runner

from musicsvc.store.engine.binding import bound
from musicsvc.store.schema import schema
from tests.support import preloaded

UPGRADE = """
import os, signal, sys, peewee
from musicsvc.store.engine.sqlite.database import SqliteDatabase
from musicsvc.store.schema import schema
url, statements = sys.argv[1], int(sys.argv[2])
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
print(*schema.upgrade(url), flush=True)
"""


def start(url: str) -> "subprocess.Popen[str]":
    """Start an upgrade that waits for a line."""
    command = [sys.executable, "-c", UPGRADE, url, "0"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def kill(url: str, after: int) -> int:
    """Upgrade in a process that is killed after this many statements, unless it ends before; return its exit code."""
    return preloaded.start(["-c", UPGRADE, url, str(after)]).wait(60)


def migrate_to(url: str, migration: str, *statements: str) -> None:
    """Apply the migrations up to this one, then run the statements."""
    with schema.migrating(url) as database, bound(database):
        Runner(database, str(schema.MIGRATIONS), table_name=schema.HISTORY).up(migration)
        for statement in statements:
            database.execute_sql(statement)
