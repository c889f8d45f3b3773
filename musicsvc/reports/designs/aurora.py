"""The cover design Aurora: blurred lights, with the text in the middle of a fine frame."""

import math
from typing import NamedTuple

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Picture, Style, circle, svg
from musicsvc.reports.designs.pixels import Colour, blended, channels, enlarged


class Palette(NamedTuple):
    ground: str
    lights: tuple[str, ...]
    ink: str


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
        svg(enlarged(_sky(chance, palette)), _frame(palette.ink)),
        (Area(140, 140, 720, 720, title, artist, across="center", down="middle", gap=70, rule=palette.ink),),
    )


def _sky(chance: Chance, palette: Palette) -> list[list[Colour]]:
    """Return rows of RGB colours: lights that fade out from their centres, over the palette's ground colour."""
    sky = [[channels(palette.ground)] * CELLS for _ in range(CELLS)]
    for light in [*chance.shuffled(palette.lights), *chance.shuffled(palette.lights)][:LIGHTS]:
        x, y, angle = chance.unit(), chance.unit(), chance.between(0, math.pi)
        along, over = chance.between(0.3, 0.46), chance.between(0.16, 0.3)
        ray = (math.cos(angle), math.sin(angle))
        colour = channels(light)
        for row in range(CELLS):
            for column in range(CELLS):
                right, down = (column + 0.5) / CELLS - x, (row + 0.5) / CELLS - y
                far = ((right * ray[0] + down * ray[1]) / along) ** 2 + ((down * ray[0] - right * ray[1]) / over) ** 2
                share = 0.92 * math.exp(-far)
                sky[row][column] = blended(sky[row][column], colour, share)
    return sky


def _frame(ink: str) -> str:
    line = f'fill="none" stroke="{ink}" stroke-width="2.5" stroke-opacity="0.7"'
    corners = [circle(x, y, 7, f'fill="{ink}"') for x in (64, 936) for y in (64, 936)]
    return f'<rect x="64" y="64" width="872" height="872" {line}/>' + "".join(corners)
