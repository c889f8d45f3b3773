"""Turn small grids of coloured cells into pictures that are enlarged smoothly to the page of a cover."""

import base64
import struct
import zlib

from musicsvc.reports.designs.canvas import SIDE

Colour = tuple[float, float, float]


def channels(colour: str) -> Colour:
    """Return (red, green, blue), each from 0 to 255, of a colour `#rrggbb`."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def blended(under: Colour, over: Colour, share: float) -> Colour:
    """Return the colour `under` with `over` painted on it. `share` is the opacity of `over`, from 0 to 1."""
    keep = 1 - share
    return under[0] * keep + over[0] * share, under[1] * keep + over[1] * share, under[2] * keep + over[2] * share


def enlarged(rows: list[list[Colour]]) -> str:
    """Return the cells as an SVG image that fills the page. The outermost cells lie beyond the edges of the page."""
    edge = SIDE / len(rows)
    data = base64.b64encode(_png(rows)).decode()
    return (
        f'<image x="{-edge}" y="{-edge}" width="{SIDE + 2 * edge}" height="{SIDE + 2 * edge}" '
        f'preserveAspectRatio="none" style="image-rendering:smooth" href="data:image/png;base64,{data}"/>'
    )


def _png(rows: list[list[Colour]]) -> bytes:
    """Return the rows of cells as a PNG image with one pixel per cell."""
    lines = b"".join(b"\0" + bytes(round(part) for cell in row for part in cell) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
