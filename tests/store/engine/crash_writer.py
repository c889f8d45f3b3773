"""For each line on stdin, processes that write to a store from many threads, until they are killed.

The line has the address of the store, a name and the number of processes. They print each name once its unit is
acknowledged. They are forked from this one, which saves them the start of Python.
"""

import os
import sys
import threading
from functools import partial

from musicsvc.store import opening
from musicsvc.store.engine.store import Store
from tests.faults import workload

LANES = 8


def tell(line: str) -> None:
    """Write a whole line at once, also beside other threads."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def call(store: Store, run: str, lane: int) -> None:
    """Write one unit after another."""
    number = 0
    while True:
        name = f"{run}/{lane}/{number}"
        store.write(partial(workload.unit, name)).result()
        tell(name)
        number += 1


def live(url: str, run: str) -> None:
    """Write until the process is killed."""
    store = opening.connect(url)
    threads = [threading.Thread(target=call, args=(store, run, lane)) for lane in range(LANES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Start writing processes, when those before have ended."""
    for line in sys.stdin:
        url, run, count = line.split()
        children = []
        for number in range(int(count)):
            children.append(os.fork())
            if children[-1] == 0:
                live(url, f"{run}.{number}")
            tell(f"pid {children[-1]}")
        for child in children:
            os.waitpid(child, 0)
        tell("ended")


if __name__ == "__main__":
    main()
