"""The cover design Arcs: a band of stripes bends from the left to the bottom, with the text inside the bend."""

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Palette, Picture, Style, circle, ground, path, svg

PALETTES = (
    Palette("#f5e6c8", ("#3b2a20", "#8c3b1f", "#d3602b", "#eb9a3c", "#f2c662"), "#3b2a20", "#a3431d"),
    Palette("#102a2e", ("#0f6466", "#2c9a8f", "#9fd3a8", "#f3e3b0", "#ee8f5a"), "#f8f0d8", "#f3b48a"),
    Palette("#fbeee6", ("#5a189a", "#9d4edd", "#f15bb5", "#ff8c61", "#fee440"), "#3c096c", "#8f2d8a"),
    Palette("#e7eef0", ("#13315c", "#2660a4", "#4fa3d1", "#f19953", "#c8553d"), "#13315c", "#a2402a"),
    Palette("#1d1420", ("#ef476f", "#f78c6b", "#ffd166", "#06d6a0", "#118ab2"), "#fff7ea", "#ffc9b8"),
    Palette("#eae6d6", ("#233d2c", "#4f772d", "#90a955", "#d9b44a", "#bc6c25"), "#233d2c", "#7d4512"),
)
WIDTH = 46
GAP = 6
OUTER = (96, 912)  # the middle of the outermost stripe: y at the left edge, x at the bottom


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    bend = chance.between(330, 470)
    stripes = [_stripe(colour, place, bend) for place, colour in enumerate(palette.colours)]
    sun = circle(912, 96, 42, f'fill="{chance.pick(palette.colours[1:])}"')
    title = Style(112, 46, 700, palette.ink, -0.02)
    artist = Style(44, 25, 400, palette.soft)
    area = Area(64, 424, 548, 516, title, artist, down="bottom", gap=22, share=0.36)
    return Picture(svg(ground(palette.ground), *stripes, sun), (area,))


def _stripe(colour: str, place: int, bend: float) -> str:
    inward = place * (WIDTH + GAP)
    y, x, radius = OUTER[0] + inward, OUTER[1] - inward, bend - inward
    data = f"M-40 {y}H{x - radius:.1f}A{radius:.1f} {radius:.1f} 0 0 1 {x} {y + radius:.1f}V1040"
    return path(data, f'fill="none" stroke="{colour}" stroke-width="{WIDTH}"')
