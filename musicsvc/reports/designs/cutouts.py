"""The cover design Cut-outs: overlapping paper shapes in printing inks, with the text on the bare paper above."""

import math

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Palette, Picture, Point, Style, circle, ground, path, smooth, svg

PALETTES = (
    Palette("#faf3e3", ("#ff6b5e", "#2f7de1", "#ffc53d", "#2bb39b"), "#22203a", "#b3392f"),
    Palette("#f6f1ea", ("#f78da7", "#5b5bd6", "#f9b54a", "#3fb28f"), "#29235c", "#5b3fa0"),
    Palette("#eef4ee", ("#3aa76d", "#f2c14e", "#f78154", "#5fb0c9"), "#173a2e", "#2f6b4f"),
    Palette("#fff1ec", ("#ff5da2", "#ff9e3d", "#8a5cf6", "#39c2d7"), "#3b1240", "#a51e66"),
    Palette("#f2efe6", ("#e4572e", "#17bebb", "#ffc914", "#76b041"), "#2e282a", "#a33a1a"),
    Palette("#edf1f7", ("#4c8bf5", "#f26d6d", "#8ed1c6", "#f5c867"), "#1c2b4a", "#2f5597"),
)
SHAPES = 6
DOT, APART = 9, 30


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    inks = chance.shuffled(palette.colours)
    title = Style(150, 44, 700, palette.ink, -0.02)
    artist = Style(54, 26, 400, palette.soft)
    shapes = [_shape(chance, ink, place) for place, ink in enumerate([*inks, *chance.shuffled(inks)][:SHAPES])]
    return Picture(
        svg(ground(palette.ground), *chance.shuffled(shapes), _dots(chance, palette.ink)),
        (Area(70, 90, 860, 336, title, artist),),
    )


def _shape(chance: Chance, ink: str, place: int) -> str:
    """Return a random pebble, leaf or half disc as SVG. It is drawn in the colour `ink`, below the text."""
    x = 40 + 920 * place / (SHAPES - 1) + chance.between(-30, 30)
    size = chance.between(150, 250)
    y = chance.between(470 + size, 960)
    outline = chance.pick((_pebble, _frond, _frond, _bowl))
    return path(outline(chance, x, y, size), f'fill="{ink}" style="mix-blend-mode:multiply"')


def _pebble(chance: Chance, x: float, y: float, size: float) -> str:
    start = chance.between(0, math.tau)
    reaches = [size * chance.between(0.7, 1.0) for _ in range(7)]
    return smooth([_around(x, y, reach, start + math.tau * corner / 7) for corner, reach in enumerate(reaches)])


def _frond(chance: Chance, x: float, y: float, size: float) -> str:
    """Return the outline of a seaweed leaf with uneven lobes, as SVG path data."""
    lobes, lean = 4 + chance.below(2), chance.between(-0.5, 0.5)
    right = [spot for row in range(lobes) for spot in _lobe(chance, row, lobes)]
    left = [(-across, down) for row in reversed(range(lobes)) for across, down in reversed(_lobe(chance, row, lobes))]
    cosine, sine = size * math.cos(lean), size * math.sin(lean)
    spots = [(0.0, 1.0), *right, (0.0, -1.05), *left]
    return smooth([(x + a * cosine - d * sine, y + a * sine + d * cosine) for a, d in spots])


def _lobe(chance: Chance, row: int, lobes: int) -> list[Point]:
    """Return points of the outline of a leaf's lobe, right of the stem. Lobe `row` 0 is at the end with y = 1."""
    level = 0.72 - 1.5 * row / (lobes - 1)
    reach = chance.between(0.55, 0.85) * (1 - 0.35 * abs(level))
    return [(0.16, level + 0.16), (reach, level - 0.02), (reach * 0.92, level - 0.22), (0.17, level - 0.12)]


def _bowl(chance: Chance, x: float, y: float, size: float) -> str:
    turn = chance.between(-40, 40)
    radians = math.radians(turn)
    start, end = _around(x, y, size, math.pi + radians), _around(x, y, size, radians)
    return f"M{start[0]:.1f} {start[1]:.1f}A{size:.1f} {size:.1f} 0 0 1 {end[0]:.1f} {end[1]:.1f}Z"


def _around(x: float, y: float, reach: float, angle: float) -> Point:
    return x + reach * math.cos(angle), y + reach * math.sin(angle)


def _dots(chance: Chance, ink: str) -> str:
    """Return halftone dots as SVG, in the colour `ink`. The dots get smaller towards one side."""
    left, top = chance.between(80, 620), chance.between(600, 760)
    columns, rows = 9, 7
    return "".join(
        circle(left + APART * column, top + APART * row, DOT * (1 - column / columns) + 1, f'fill="{ink}"')
        for row in range(rows)
        for column in range(columns)
    )
