"""SIGHUP from a terminal that is closed, and SIGHUP while a server starts."""

import os
import pty
import signal
import time
from pathlib import Path

import pytest

from tests.support import preloaded
from tests.support.program import ended, is_running, run

SERVE = """
import os, signal, sys
from musicsvc.cli.main import main
os.close(os.open({terminal!r}, os.O_RDWR))  # the first one of a session becomes its terminal
signal.signal(signal.SIGHUP, {handler:d})
sys.argv[1:] = ["serve", "--port", "0"]
main()
"""


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("ignored", [False, True])
def test_closing_the_terminal_ends_the_server_but_not_under_nohup(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store_url: str, *, ignored: bool
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "folder"))
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    ours, theirs = pty.openpty()
    reading, writing = os.pipe()
    code = SERVE.format(terminal=os.ttyname(theirs), handler=signal.SIG_IGN if ignored else signal.SIG_DFL)
    process = preloaded.start(["-c", code], writing, writing, theirs)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe, ended(process):
        next(line for line in pipe if b"listens on" in line)
        time.sleep(0.5)
        os.close(theirs)
        os.close(ours)
        if ignored:
            time.sleep(0.5)
            assert is_running(process.pid)
            process.terminate()
        assert process.wait(20) == 0


MASKS = """
import signal, sys, threading
from musicsvc import config
from musicsvc.clock import Clock
from musicsvc.server import serving
from musicsvc.store import opening
blocked = []
def begun(*_):
    sys.setprofile(None)
    blocked.append(signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, []))
threading.setprofile(begun)
settings = config.load()
def check_database():
    opening.connect(settings.store_url).close()
    sys.exit(f"{len(blocked) > 0} {all(blocked)}")
serving.serve(settings, Clock(), print, lambda: settings, check_database)
"""


@pytest.mark.only_on("sqlite")
@pytest.mark.usefixtures("migrated")
def test_no_thread_that_ends_late_takes_a_signal_during_the_start() -> None:
    started = run("-c", MASKS)
    assert started.stderr == "True True\n"
