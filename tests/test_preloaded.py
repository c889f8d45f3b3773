"""Programs that fork from a process with everything imported are like programs in a new interpreter."""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import preloaded
from tests.support.program import is_running, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere all programs start in a new interpreter")

STATE = """
import gc, json, os, resource, signal, sys, threading
streams = sys.stdin, sys.stdout, sys.stderr
texts = [[each.encoding, each.errors, each.line_buffering, each.write_through, each.seekable()] for each in streams]
descriptors = {int(name) for name in os.listdir("/proc/self/fd")}
limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
print(json.dumps({
    "arguments": sys.argv,
    "import path": sys.path,
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "descriptors above the streams": sorted(number for number in descriptors if number > 2)[1:],
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
    "umask": os.umask(0),
    "leads its session": os.getsid(0) == os.getpid(),
    "signals": [str(signal.getsignal(number)) for number in range(1, signal.NSIG) if number not in (32, 33)],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": threading.active_count(),
    "collects garbage": gc.isenabled(),
    "name": __name__,
    "streams": texts,
    "standard streams": [sys.__stdin__ is sys.stdin, sys.__stdout__ is sys.stdout, sys.__stderr__ is sys.stderr],
    "input": sys.stdin.read(),
}))
print("told", file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def fewer_files() -> Iterator[None]:
    """Let the test process have fewer files than the fork server may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("fewer_files")
def test_a_preloaded_program_differs_in_nothing_from_a_new_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preloaded.start(["-c", ""]).wait(30)  # the fork server runs, with another folder and another environment
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUSICSVC_HOST", "\udcff and é")
    arguments = ["-c", STATE, "one", "two three"]
    files = [tmp_path / name for name in ("in", "out", "err")]
    files[0].write_text("line\n", "utf-8")
    with files[0].open("rb") as given, files[1].open("wb") as out, files[2].open("wb") as err:
        new = subprocess.run(
            [sys.executable, *arguments],
            stdin=given,
            stdout=out,
            stderr=err,
            check=False,
            env=preloaded.environment(),  # without COLUMNS, which readline of the test process sets for its children
            start_new_session=True,
            preexec_fn=preloaded.default_signals,
        )
    done = run(*arguments, stdin="line\n")
    assert json.loads(done.stdout) == json.loads(files[1].read_text("utf-8"))
    assert (done.returncode, done.stderr) == (new.returncode, files[2].read_text("utf-8")) == (3, "told\n")


def test_its_end_is_known_by_code_and_by_signal(tmp_path: Path) -> None:
    with (tmp_path / "err").open("w+b") as err:
        raised = preloaded.start(["-c", "raise ValueError"], stderr=err.fileno())
        assert raised.wait(30) == 1
        err.seek(0)
        assert err.read().endswith(b"ValueError\n")
        waiting = preloaded.start(["-c", "import signal; signal.pause()"], stderr=err.fileno())
        assert waiting.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.01)
        waiting.kill()
        assert (waiting.wait(30), waiting.poll(), waiting.returncode) == (-signal.SIGKILL,) * 3
        assert not is_running(waiting.pid)
        waiting.send_signal(signal.SIGTERM)  # nothing to do


@pytest.mark.parametrize("name", ["PYTHONUNBUFFERED", "LC_ALL", "TZ"])
def test_what_only_a_new_interpreter_heeds_starts_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    for _ in range(2):
        program = preloaded.start(["-c", ""])
        kinds.append(type(program))
        assert program.wait(30) == 0
        monkeypatch.setenv(name, "C")
    assert kinds == [preloaded.Forked, subprocess.Popen]


def test_a_variable_that_is_set_when_the_first_program_starts_is_not_that_of_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    preloaded.close()
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Asia/Tokyo")
        first = preloaded.start(["-c", ""])
    second = preloaded.start(["-c", ""])
    assert [first.wait(30), second.wait(30)] == [0, 0]
    assert [type(first), type(second)] == [subprocess.Popen, preloaded.Forked]
