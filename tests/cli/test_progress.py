"""The progress bar: where it is shown, and what it counts."""

import os
import pty
import re
import select
import sys
from collections.abc import Callable

import pytest

from musicsvc.cli import progress
from musicsvc.cli.session import Session


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that shows a bar which is half done on a terminal, and returns the text on the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def draw(term: str = "xterm", *, quiet: bool = False, hidden: bool = False) -> str:
        monkeypatch.setenv("TERM", term)
        ours, theirs = pty.openpty()
        shown = b""
        with open(theirs, "w", encoding="utf-8") as stream, monkeypatch.context() as patch:  # noqa: PTH123 - a descriptor has no path
            patch.setattr(sys, "stderr", stream)
            with progress.bar(Session(quiet=quiet), "rows [of] a\x1b", hidden=hidden) as on_progress:
                on_progress(5, 10)
            stream.flush()
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 65_536)
        os.close(ours)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())

    return draw


def test_the_bar_names_its_work_and_the_part_that_is_done(drawn: Callable[..., str]) -> None:
    assert re.search(r"rows \[of\] a\\x1b .* 50%", drawn())


def test_no_bar_is_shown_where_it_would_be_in_the_way(drawn: Callable[..., str]) -> None:
    assert drawn("dumb") == drawn(quiet=True) == drawn(hidden=True) == ""


def test_every_thousandth_row_is_reported() -> None:
    reported: list[tuple[float, float]] = []
    rows = range(3_500)
    assert list(progress.counted(rows, 2_500, lambda *parts: reported.append(parts))) == list(rows)
    assert reported == [(1_000, 2_500), (2_000, 2_500), (3_000, 3_000)]
