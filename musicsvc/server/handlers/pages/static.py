"""The style sheets, scripts and icons of pages."""

from functools import lru_cache

from musicsvc.errors import NotFound
from musicsvc.server.pages import html
from musicsvc.server.shapes.envelope import Download, Representation, represent

FOR_EVER = "public, max-age=31536000, immutable"  # the name contains the hash of the content


def send(name: str) -> Download:
    """Send a static file."""
    if name not in html.static_files():
        raise NotFound("There is no such file.")
    return Download.from_representation(_file(name), {"Cache-Control": FOR_EVER})


@lru_cache(maxsize=64)
def _file(name: str) -> Representation:
    """Return the file with its gzip form. The result is cached."""
    path = html.static_files()[name]
    return represent(path.read_bytes(), f"{html.KINDS[path.suffix]}; charset=utf-8")
