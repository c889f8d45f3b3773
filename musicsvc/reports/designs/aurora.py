"""The cover design Aurora: blurred lights, with the text in the middle of a fine frame."""

import base64
import math
import struct
import zlib

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import SIDE, Area, Palette, Picture, Style, circle, svg

Colour = tuple[float, float, float]


def _channels(colour: str) -> Colour:
    """Return (red, green, blue), each from 0 to 255, of a colour `#rrggbb`."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def _blended(under: Colour, over: Colour, share: float) -> Colour:
    """Return the colour `under` with `over` painted on it. `share` is the opacity of `over`, from 0 to 1."""
    keep = 1 - share
    return under[0] * keep + over[0] * share, under[1] * keep + over[1] * share, under[2] * keep + over[2] * share


def _enlarged(rows: list[list[Colour]]) -> str:
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


PALETTES = (
    Palette("#12082b", ("#5b21b6", "#9d174d", "#1e3a8a", "#a03a12", "#0f5e63"), "#ffffff"),
    Palette("#04141f", ("#0b5d5e", "#0c4a8a", "#146b3a", "#312e81", "#0a6a86"), "#f3fffb"),
    Palette("#1f0910", ("#9f1239", "#7c2d12", "#86198f", "#92500e", "#581c5c"), "#fff5ee"),
    Palette("#fbf3ea", ("#ffc9b5", "#f7aef8", "#b8e0ff", "#ffe29a", "#c9f2d0"), "#2b1b3d"),
    Palette("#eef3fb", ("#b9d4ff", "#d7c4ff", "#b6f0e4", "#ffd0e4", "#fdf0b5"), "#14213d"),
    Palette("#0a0d1c", ("#27308f", "#0e5c8f", "#5a2a97", "#8f1f5c", "#123b6b"), "#f2f4ff"),
)

CELLS = 36  # per side of a small picture that is enlarged, since a real blur takes seconds
LIGHTS = 7


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    title = Style(140, 42, 400, palette.ink, -0.01)
    artist = Style(44, 25, 400, palette.ink, 0.08)
    return Picture(
        svg(_enlarged(_sky(chance, palette)), _frame(palette.ink)),
        (Area(140, 140, 720, 720, title, artist, across="center", down="middle", gap=70, rule=palette.ink),),
    )


def _sky(chance: Chance, palette: Palette) -> list[list[Colour]]:
    """Return rows of RGB colours: lights that fade out from their centres, over the palette's ground colour."""
    sky = [[_channels(palette.ground)] * CELLS for _ in range(CELLS)]
    for light in [*chance.shuffled(palette.colours), *chance.shuffled(palette.colours)][:LIGHTS]:
        x, y, angle = chance.unit(), chance.unit(), chance.between(0, math.pi)
        along, over = chance.between(0.3, 0.46), chance.between(0.16, 0.3)
        ray = (math.cos(angle), math.sin(angle))
        colour = _channels(light)
        for row in range(CELLS):
            for column in range(CELLS):
                right, down = (column + 0.5) / CELLS - x, (row + 0.5) / CELLS - y
                far = ((right * ray[0] + down * ray[1]) / along) ** 2 + ((down * ray[0] - right * ray[1]) / over) ** 2
                share = 0.92 * math.exp(-far)
                sky[row][column] = _blended(sky[row][column], colour, share)
    return sky


def _frame(ink: str) -> str:
    line = f'fill="none" stroke="{ink}" stroke-width="2.5" stroke-opacity="0.7"'
    corners = [circle(x, y, 7, f'fill="{ink}"') for x in (64, 936) for y in (64, 936)]
    return f'<rect x="64" y="64" width="872" height="872" {line}/>' + "".join(corners)
