"""Writes to a store from many threads until it is killed, and prints each name once its unit is acknowledged."""

import os
import sys
import threading
import uuid

from musicsvc.store import database
from musicsvc.store.database import Store
from musicsvc.store.models import Genre, Tag

THREADS = 8
PARTS = 3


def unit(name: str) -> None:
    """A genre and its tags: whole or not at all."""
    Genre.insert(name=name, display_name=name).execute()
    for part in range(PARTS):
        Tag.insert(name=f"{name}.{part}").execute()


def write(store: Store, run: str, thread: int) -> None:
    """One caller after the other."""
    number = 0
    while True:
        name = f"{run}-{thread}-{number}"
        store.write(lambda name=name: unit(name)).result()  # type: ignore[misc]
        os.write(sys.stdout.fileno(), f"{name}\n".encode())
        number += 1


def main() -> None:
    """Write for ever."""
    store = database.connect(sys.argv[1])
    run = uuid.uuid4().hex[:8]
    threads = [threading.Thread(target=write, args=(store, run, thread)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
