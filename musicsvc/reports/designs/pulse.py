"""The cover design Pulse: a sound wave bent into a ring, with the text below it."""

import math
from typing import NamedTuple

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Picture, Style, circle, glow, ground, mixed, svg


class Palette(NamedTuple):
    """Colours of the page, of both ends of the ring's gradient, and of the text."""

    ground: str
    first: str
    second: str
    ink: str
    soft: str


PALETTES = (
    Palette("#0b0e14", "#ff3d68", "#ffb443", "#ffffff", "#ffb9a8"),
    Palette("#08131a", "#19e3b1", "#2f80ff", "#f2fffb", "#93d9e6"),
    Palette("#13091f", "#b14bff", "#ff5fa2", "#fdf5ff", "#e3b5f5"),
    Palette("#f4f1ea", "#d1495b", "#00798c", "#1c2430", "#5d3b4e"),
    Palette("#10160c", "#c6f432", "#23c16b", "#fbffef", "#cbe8a0"),
    Palette("#fff4e4", "#ef6f3c", "#7a3b8f", "#2b1a35", "#8a3d2c"),
)
BARS = 132
MIDDLE = (500, 362)
INNER, LEAST, MOST = 128, 10, 190


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    title = Style(104, 40, 700, palette.ink, -0.01)
    artist = Style(46, 26, 400, palette.soft, 0.02)
    return Picture(
        svg(
            f"<defs>{glow('glow', mixed(palette.first, palette.second, 0.5), strength=0.42)}</defs>",
            ground(palette.ground),
            circle(*MIDDLE, 470, 'fill="url(#glow)"'),
            *_bars(chance, palette),
            circle(*MIDDLE, INNER - 24, f'fill="none" stroke="{palette.first}" stroke-width="3"'),
            circle(*MIDDLE, 22, f'fill="{palette.second}"'),
        ),
        (Area(70, 712, 860, 226, title, artist, across="center", down="middle", gap=16),),
    )


def _bars(chance: Chance, palette: Palette) -> list[str]:
    """Return the bars of the ring as SVG elements. The left and the right half of the ring mirror each other."""
    heights = _heights(chance)
    bars = []
    for place in range(BARS):
        side = place / (BARS - 1)
        angle = math.tau * place / BARS - math.pi / 2
        mirrored = min(place, BARS - place)
        reach = INNER + LEAST + (MOST - LEAST) * heights[mirrored]
        x, y = math.cos(angle), math.sin(angle)
        colour = mixed(palette.first, palette.second, 1 - abs(2 * side - 1))
        bars.append(
            f'<line x1="{MIDDLE[0] + INNER * x:.1f}" y1="{MIDDLE[1] + INNER * y:.1f}" '
            f'x2="{MIDDLE[0] + reach * x:.1f}" y2="{MIDDLE[1] + reach * y:.1f}" stroke="{colour}"/>'
        )
    return [f'<g stroke-width="7" stroke-linecap="round">{"".join(bars)}</g>']


def _heights(chance: Chance) -> list[float]:
    """Return the heights (0 to 1) of the bars of half the ring, which resemble the waveform of a piece of music."""
    swells = [(chance.between(1, 3.2) * order, chance.between(0, math.tau), 1 / order) for order in (1, 2, 3)]
    heights = []
    for place in range(BARS // 2 + 1):
        turn = math.tau * place / BARS
        swell = sum(size * math.sin(turn * pace + start) for pace, start, size in swells) / 1.84
        heights.append(max(0.5 + 0.5 * swell, 0.04) * chance.between(0.4, 1.0))
    highest = max(heights)
    return [height / highest for height in heights]
