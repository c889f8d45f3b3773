"""The thread for imports of pages: what its log says about a lasting fault."""

import threading
from pathlib import Path

import pytest

from musicsvc.clock import Clock
from musicsvc.server.jobs import import_worker
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.tasks.uploads import Place
from musicsvc.store.importing.tasks.work import Worker


async def test_a_defect_that_lasts_is_logged_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    faults = [RuntimeError("can't start new thread")] * 3 + [KeyError("x")] * 2 + [None] + [KeyError("x")]
    done = threading.Event()

    def settle(_: Worker) -> None:
        if not faults:
            done.set()
        elif (fault := faults.pop(0)) is not None:
            raise fault

    monkeypatch.setattr(import_worker, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(import_worker, "SETTLE_SECONDS", -1.0)
    monkeypatch.setattr(Worker, "settle", settle)
    worker = import_worker.ImportWorker(store, Place(tmp_path), Clock())
    worker.start()
    assert done.wait(10)
    await worker.stop()
    told = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert told == [RuntimeError, KeyError, KeyError]
