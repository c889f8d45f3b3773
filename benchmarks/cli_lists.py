"""CPU time of the whole process for the lists of the command line, beside one that shows a single row.

python benchmarks/cli_lists.py [--accounts 7628] [--rounds 5]
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.engine import bulk
from musicsvc.store.engine.sqlite import files
from musicsvc.store.models import Token, User
from musicsvc.store.schema import schema

LINES = (
    "user show 0@import.test",
    *(f"{noun} list{more}" for noun in ("user", "token", "access") for more in ("", " --json")),
    "user list --search 77@",
    "user list --limit 20",
)


def main() -> None:
    """Fill a database, run every command in turn, print the medians."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--accounts", type=int, default=7_628)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "musicsvc.db")
        fill(file, given.accounts)
        environment = {**os.environ, "MUSICSVC_DATABASE_URL": f"sqlite:///{file}", "MUSICSVC_DATA_DIR": folder}  # noqa: TID251 - the child's
        rounds = [[seconds(line, environment) for line in LINES] for _ in range(given.rounds)]
    print(f"{given.accounts:,} accounts with a token each; CPU seconds, median of {given.rounds}")
    for line, costs in zip(LINES, zip(*rounds, strict=True), strict=True):
        print(f"{line:30} {statistics.median(costs):.2f}")


def fill(file: Path, accounts: int) -> None:
    """Make accounts with API access and a token each."""
    now = time.time_ns() // 1000
    files.create(file)
    schema.upgrade(f"sqlite:///{file}")

    def unit() -> None:
        people = [users.NewUser(f"{number}@import.test", f"Listener {number}") for number in range(accounts)]
        ids = users.create_many(people, now=now)
        User.update(api_access=True).execute()
        columns = ("user", "name", "digest", "last_four", "created_at", "expires_at")
        rows = [(each, "a laptop", sha256(str(each).encode()).digest(), "abcd", now, now + 1) for each in ids]
        bulk.insert(Token, columns, rows)

    with opening.connect(f"sqlite:///{file}") as store:
        store.write(unit).result()


def seconds(line: str, environment: dict[str, str]) -> float:
    """Return the CPU time of one run of the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "musicsvc", *line.split()]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - our own program
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
