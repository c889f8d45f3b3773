"""A node in a process of its own, which reports batches of plays one after the other and may be killed."""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.postgres.store import PostgresStore
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from tests.conftest import NOW

SPAWN = multiprocessing.get_context("spawn")
Batches = Sequence[Sequence[ReportedPlay]]


class Node:
    def __init__(self, url: str, folder: Path, batches: Batches, actor: Identity) -> None:
        self._acknowledged, theirs = SPAWN.Pipe(duplex=False)
        self.process = SPAWN.Process(target=_report, args=(url, folder, batches, actor, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def await_batch(self) -> int:
        """Wait until a further batch is acknowledged. Return how many of its plays were accepted."""
        accepted: int = self._acknowledged.recv()
        return accepted

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@contextmanager
def running(url: str, folder: Path, batches: Batches, actor: Identity) -> Iterator[Node]:
    node = Node(url, folder, batches, actor)
    try:
        yield node
    finally:
        node.kill()


def _report(url: str, folder: Path, batches: Batches, actor: Identity, pipe: Connection) -> None:
    with PostgresStore(url, folder) as store:
        for batch in batches:
            pipe.send(store.write(partial(ingest.report, batch, now=NOW, actor=actor)).result().accepted)
