"""The cover design Horizon: a sun behind ridges of hills, with the text in the sky."""

import math
from typing import NamedTuple

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Picture, Style, circle, glow, gradient, ground, mixed, path, svg


class Palette(NamedTuple):
    """Colours of the sky (from the top to the horizon), the sun, the nearest hill and the text."""

    sky: tuple[str, ...]
    sun: str
    near: str
    ink: str
    soft: str


PALETTES = (
    Palette(("#1b1b3a", "#53274f", "#b5475a", "#f6945c"), "#ffd98a", "#120f26", "#fff6e8", "#ffd2b0"),
    Palette(("#f6ead7", "#f3cfb3", "#eda58a", "#d9776c"), "#fff4dc", "#5a2a3f", "#3a1d33", "#7a3346"),
    Palette(("#0c2233", "#14495b", "#2f7f86", "#9fc9b0"), "#fdf0c4", "#071620", "#f2fbf4", "#d9f2e6"),
    Palette(("#e9f0f2", "#cfe0e6", "#a6c4d1", "#86a9bd"), "#ffffff", "#1e3a4c", "#173040", "#2c4d61"),
    Palette(("#2a0f1e", "#5c1a2b", "#a63a2c", "#e8813a"), "#ffe2a0", "#16070d", "#fff1e0", "#ffc9a0"),
    Palette(("#141428", "#2c2a5a", "#5c52a0", "#b39ad6"), "#f7e3f4", "#0c0c1c", "#f7f4ff", "#e6dffb"),
)
RIDGES = 6
STEP = 10
LINE = 610  # height of the farthest ridge


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    x, radius = chance.between(260, 740), chance.between(105, 155)
    y = LINE - chance.between(-15, 25)
    title = Style(150, 44, 700, palette.ink, -0.015)
    artist = Style(58, 26, 400, palette.soft)
    return Picture(
        svg(
            f"<defs>{gradient('sky', *palette.sky)}{glow('glow', palette.sun, strength=0.75)}</defs>",
            ground("url(#sky)"),
            circle(x, y, radius * 2.6, 'fill="url(#glow)"'),
            circle(x, y, radius, f'fill="{palette.sun}"'),
            *_ridges(chance, palette),
        ),
        (Area(70, 90, 860, 328, title, artist),),
    )


def _ridges(chance: Chance, palette: Palette) -> list[str]:
    """Return ridges of hills as SVG elements. Nearer ridges are darker."""
    return [
        path(_ridge(chance, depth), f'fill="{mixed(palette.sky[-1], palette.near, (0.32 + 0.68 * depth) ** 1.1)}"')
        for depth in (place / (RIDGES - 1) for place in range(RIDGES))
    ]


def _ridge(chance: Chance, depth: float) -> str:
    level = LINE + 20 + 300 * depth**1.15
    waves = [
        (chance.between(26, 58) / (order * 0.9), order * chance.between(0.5, 1.1) / 140, chance.between(0, math.tau))
        for order in (1, 2, 3, 5)
    ]
    line = "L".join(
        f"{x} {level - sum(size * math.sin(x * pace + start) for size, pace, start in waves):.1f}"
        for x in range(0, 1000 + STEP, STEP)
    )
    return f"M0 1000L{line}L1000 1000Z"
