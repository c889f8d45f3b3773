"""The cover design Rings: lines like the growth rings of a tree, with the text on a plate above them."""

import math
from typing import NamedTuple

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Picture, Point, Style, ground, mixed, path, smooth, svg


class Palette(NamedTuple):
    """Colours of the page, of the lines from the centre (`heart`) to the edge (`rim`), of the plate and of its text."""

    ground: str
    heart: str
    rim: str
    plate: str
    ink: str
    soft: str


PALETTES = (
    Palette("#f3ead9", "#c8553d", "#2d4654", "#2d4654", "#fdf6e8", "#f5bfa6"),
    Palette("#10222b", "#f4d58d", "#3d8a8a", "#f4d58d", "#10222b", "#4a4a2a"),
    Palette("#2b1635", "#ff8fab", "#6a4c93", "#ffe5ec", "#2b1635", "#83305a"),
    Palette("#e6ece3", "#386641", "#a7c957", "#274029", "#f4f9ec", "#c8e09a"),
    Palette("#16161d", "#f25f4c", "#5a5766", "#f25f4c", "#1a0d0d", "#4a1512"),
    Palette("#dfe9f5", "#1d4e89", "#f7934c", "#14365f", "#f5f9ff", "#ffc79b"),
)
LINES = 30
CORNERS = 40
REACH = 1080


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    title = Style(104, 42, 700, palette.ink, -0.015)
    artist = Style(44, 25, 400, palette.soft)
    area = Area(60, 330, 880, 610, title, artist, down="bottom", gap=16, share=0.3, plate=palette.plate, inset=42)
    return Picture(svg(ground(palette.ground), *_rings(chance, palette)), (area,))


def _rings(chance: Chance, palette: Palette) -> list[str]:
    """Return closed SVG lines around a centre, each slightly different from the next inner line. A few are filled."""
    heart = (chance.between(480, 760), chance.between(220, 400))
    waves = [(order, chance.between(0.05, 0.16) / order**0.6, chance.between(0, math.tau)) for order in (2, 3, 5)]
    drift = [chance.between(-0.9, 0.9) for _ in waves]
    filled = {chance.below(9) + 3, chance.below(9) + 12}
    rings = []
    for line in range(LINES, 0, -1):
        share = line / LINES
        bent = [
            (order, size, start + turn * share * 2) for (order, size, start), turn in zip(waves, drift, strict=True)
        ]
        colour = mixed(palette.heart, palette.rim, share)
        inside = mixed(colour, palette.ground, 0.55) if line in filled else palette.ground
        width = 3 + 5 * (0.5 + 0.5 * math.sin(line * 1.7 + drift[0] * 9))
        data = smooth(_ring(heart, REACH * share**1.25, bent))
        rings.append(path(data, f'fill="{inside}" stroke="{colour}" stroke-width="{width:.1f}"'))
    return rings


def _ring(heart: Point, radius: float, waves: list[tuple[int, float, float]]) -> list[Point]:
    points = []
    for corner in range(CORNERS):
        angle = math.tau * corner / CORNERS
        reach = radius * (1 + sum(size * math.sin(order * angle + start) for order, size, start in waves))
        points.append((heart[0] + reach * math.cos(angle), heart[1] + reach * math.sin(angle)))
    return points
