"""Drawings that the limited program makes: covers, avatars and PDF reports. It has the fonts before the first task."""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

from musicsvc.reports import pdf, typesetting
from musicsvc.reports.art import avatars, covers

DRAWN: dict[str, Callable[..., bytes]] = {
    "avatar": avatars.draw,
    "cover": covers.cover,
    "report": pdf.render,
    "thumbnail": covers.thumbnail,
}

# Threads of Typst: each takes 64 MiB of addresses, of which the program has a gigabyte.
os.environ["RAYON_NUM_THREADS"] = "2"  # noqa: TID251 - where the library looks for it
os.setpriority(os.PRIO_PROCESS, 0, 10)  # as the threads that wait for it, whoever began it
typesetting.fonts()


def parts(kind: str, *arguments: Any) -> Iterator[str]:
    """Yield a drawing of this kind, in base 64."""
    yield b64encode(DRAWN[kind](*arguments)).decode()
