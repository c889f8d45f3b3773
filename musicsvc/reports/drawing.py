"""What the limited program draws: covers, avatars and PDF reports. It has the fonts before the first task."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

from musicsvc import environment
from musicsvc.errors import Failure
from musicsvc.reports import pdf, typesetting
from musicsvc.reports.art import avatars, covers

DRAWN: dict[str, Callable[..., bytes]] = {
    "avatar": avatars.draw,
    "cover": covers.cover,
    "report": pdf.render,
    "thumbnail": covers.thumbnail,
}

environment.set_threads(2)  # of Typst; each takes 64 MiB of addresses, of which the program has a gigabyte
typesetting.fonts()


def parts(kind: str, *arguments: Any) -> Iterator[str]:
    """Yield a drawing of this kind, in base 64. Raises Failure for any fault but a lack of memory."""
    try:
        drawn = DRAWN[kind](*arguments)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the server logs it
        raise Failure(f"{kind}: {error!r}") from None
    yield b64encode(drawn).decode()
