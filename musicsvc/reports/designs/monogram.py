"""The cover design Monogram: the title's first letter fills the page behind the text, in a similar colour."""

from typing import NamedTuple

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Giant, Picture, Style, circle, svg


class Palette(NamedTuple):
    ground: str
    giant: str
    accent: str
    ink: str


PALETTES = (
    Palette("#c1121f", "#a30d19", "#fdf0d5", "#fff8ea"),
    Palette("#f4a259", "#f7b676", "#1b2a41", "#14202f"),
    Palette("#1b4332", "#255843", "#d8f3dc", "#f2fbf3"),
    Palette("#e9e4d8", "#dad2bf", "#962a20", "#1f1d1a"),
    Palette("#22223b", "#32325a", "#f2b5d4", "#fbf4f8"),
    Palette("#0a4d8c", "#0d5ca6", "#ffe3a3", "#f7fbff"),
)


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    giant = Giant(
        round(chance.between(540, 680)),
        round(chance.between(470, 560)),
        round(chance.between(900, 1040)),
        palette.giant,
        palette.ground,
    )
    title = Style(180, 44, 700, palette.ink, -0.02)
    artist = Style(48, 26, 400, palette.accent)
    return Picture(
        svg(
            f'<rect x="70" y="222" width="860" height="4" fill="{palette.accent}"/>',
            circle(906, 918, 24, f'fill="{palette.accent}"'),
        ),
        (Area(70, 70, 860, 130, artist=artist, down="bottom"), Area(70, 270, 860, 600, title, down="top")),
        giant,
    )
