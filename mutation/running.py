"""Runs breaks in copies of the project, several at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from queue import SimpleQueue
from typing import TYPE_CHECKING

from mutation.project import Copy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutation.breaks import Break
    from mutation.choosing import Chooser
    from mutation.project import Project

PASSED, NO_TESTS = 0, 5  # exit codes of pytest
SLACK = 10.0  # seconds that a test may take in any case
FACTOR = 6.0  # how many times its recorded seconds a test may take
START_SECONDS = 60.0
SLOW = 1.0  # a failure of a test that takes longer may be the machine's
INTERRUPT_SECONDS = 10.0


class BrokenBeforeError(Exception):
    """The tests fail on the unbroken code; the message is their output."""


class Outcome(StrEnum):
    """What the tests made of a break."""

    CAUGHT = "caught"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


@dataclass(frozen=True)
class Result:
    """A break, its outcome, the test that noticed it, and how long that took."""

    broken: Break
    outcome: Outcome
    test: str
    seconds: float
    tests: int
    left_out: float


@dataclass(frozen=True)
class _Ended:
    passed: bool
    timed_out: bool = False
    test: str = ""


class Worker:
    """Breaks one copy of the project, again and again."""

    def __init__(self, copy: Copy, recorded: Mapping[str, float], patience: float) -> None:
        self._copy = copy
        self._recorded = recorded
        self._patience = patience
        self._moment = int(time.time())

    def check(self, tests: Sequence[str]) -> None:
        """Make sure that the copy passes tests while nothing is broken."""
        if not self._run(tests).passed:
            raise BrokenBeforeError((self._copy.site / "output").read_text("utf-8", errors="replace"))

    def judge(self, broken: Break, chooser: Chooser) -> Result:
        """Run the tests of a break until one fails."""
        began = time.monotonic()
        choice = chooser(broken)
        ran = len(choice.first) + len(choice.rest)
        unreliable: set[str] = set()
        for stage in (choice.first, choice.rest):
            while tests := [test for test in stage if test not in unreliable]:
                with self._break(broken):
                    ended = self._run(tests)
                if ended.passed:
                    break
                if self._is_reliable(ended):
                    outcome = Outcome.TIMED_OUT if ended.timed_out else Outcome.CAUGHT
                    return Result(broken, outcome, ended.test, time.monotonic() - began, ran, 0.0)
                unreliable.add(ended.test)
        return Result(broken, Outcome.SURVIVED, "", time.monotonic() - began, ran - len(unreliable), choice.left_out)

    def _is_reliable(self, ended: _Ended) -> bool:
        """Whether the test that failed passes on the unbroken code; quick ones are believed."""
        if not ended.test or (self._recorded.get(ended.test, 0.0) < SLOW and not ended.timed_out):
            return True
        return self._run([ended.test]).passed

    @contextmanager
    def _break(self, broken: Break) -> Iterator[None]:
        path = self._copy.root / broken.module
        unbroken = path.read_bytes()
        try:
            self._write(broken.module, broken.content)
            yield
        finally:
            self._write(broken.module, unbroken)

    def _write(self, module: str, content: bytes) -> None:
        """Write a module with a time of its own: bytecode is told apart by whole seconds."""
        path = self._copy.root / module
        path.write_bytes(content)
        self._moment += 1
        os.utime(path, (self._moment, self._moment))

    def _run(self, tests: Sequence[str]) -> _Ended:
        limits = {test: self._patience * (SLACK + FACTOR * self._recorded.get(test, 0.0)) for test in tests}
        notes, output = (self._copy.site / name for name in ("notes", "output"))
        notes.unlink(missing_ok=True)
        self._copy.configure("mutation_order", {"tests": limits, "output": str(notes)})
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        process = self._copy.start(["-x", "-q", "--no-header", "-p", "mutation_order", *files], output)
        longest = START_SECONDS * self._patience + max(limits.values()) + sum(map(self._expected, tests))
        try:
            code = process.wait(longest)
        except subprocess.TimeoutExpired:
            self._interrupt(process)
            code = None
        self._copy.kill()
        events = [line.partition(" ")[::2] for line in _lines(notes.read_text("utf-8") if notes.exists() else "")]
        failed = [test for event, test in events if event == "failed"]
        running = [test for event, test in events if event == "started"]
        if code in {PASSED, NO_TESTS}:
            return _Ended(passed=True)
        if failed:
            return _Ended(passed=False, test=failed[-1])
        return _Ended(passed=False, timed_out=code is None or bool(running), test=running[-1] if running else "")

    def _expected(self, test: str) -> float:
        return self._patience * 3 * self._recorded.get(test, 0.0)

    @staticmethod
    def _interrupt(process: subprocess.Popen[bytes]) -> None:
        """Let pytest close what its fixtures opened, and end it all the same."""
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(INTERRUPT_SECONDS)
            return
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(text: str) -> Iterator[str]:
    yield from (line for line in text.splitlines() if line)


def judge_all(
    project: Project,
    breaks: Sequence[Break],
    chooser: Chooser,
    recorded: Mapping[str, float],
    *,
    workers: int,
    patience: float,
) -> Iterator[Result]:
    """Judge breaks in as many copies as there are workers; yield each result as it comes."""
    with ExitStack() as stack:
        free: SimpleQueue[Worker] = SimpleQueue()
        copies = [stack.enter_context(Copy(project)) for _ in range(workers)]
        for copy in copies:
            worker = Worker(copy, recorded, patience)
            worker.check(sorted(recorded, key=lambda test: recorded[test])[:1])
            free.put(worker)

        def judge(broken: Break) -> Result:
            worker = free.get()
            try:
                return worker.judge(broken, chooser)
            finally:
                free.put(worker)

        pool = stack.enter_context(ThreadPoolExecutor(workers))
        try:
            for future in as_completed([pool.submit(judge, broken) for broken in breaks]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.kill()
