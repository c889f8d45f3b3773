"""The cover design Blocks: a grid of geometric figures above a plain field with the text."""

from musicsvc.reports.art.chance import Chance
from musicsvc.reports.designs.canvas import Area, Palette, Picture, Style, ground, path, svg

PALETTES = (
    Palette("#f2e8d5", ("#d8412f", "#1f4e8c", "#f0b323", "#1d1d1b", "#f2e8d5"), "#1d1d1b", "#8a2b1c"),
    Palette("#14213d", ("#fca311", "#e5e5e5", "#e63946", "#2a6f97", "#14213d"), "#fdf6e3", "#fca311"),
    Palette("#0f3d3e", ("#e07a5f", "#f4f1de", "#81b29a", "#f2cc8f", "#0b2b2c"), "#f4f1de", "#f2b880"),
    Palette("#f7d6e0", ("#7b2cbf", "#ff5d8f", "#ff9770", "#ffd670", "#33164a"), "#33164a", "#a3195b"),
    Palette("#e8ede0", ("#2d6a4f", "#95d5b2", "#d8a657", "#bc4b51", "#16302b"), "#16302b", "#2f6b52"),
    Palette("#20202a", ("#f582ae", "#8bd3dd", "#fef6e4", "#f3d2c1", "#3a3a52"), "#f5f5f5", "#8bd3dd"),
)
SIZE = 200
COLUMNS, ROWS = 5, 3
# Path data of figures in a tile of 200 by 200, which is turned by a multiple of 90 degrees.
FIGURES = (
    "M0 0H200A200 200 0 0 1 0 200Z",
    "M0 0H200V200H0ZM100 40A60 60 0 1 0 100 160A60 60 0 1 0 100 40Z",
    "M0 100A100 100 0 0 1 200 100Z",
    "M0 0L200 200H0Z",
    "M100 10A90 90 0 1 1 100 190A90 90 0 1 1 100 10Z",
    "M0 0H40V200H0ZM80 0H120V200H80ZM160 0H200V200H160Z",
    "M0 0H100A100 100 0 0 1 0 100ZM200 200H100A100 100 0 0 1 200 100Z",
    "M0 200A200 200 0 0 1 200 0V66A134 134 0 0 0 66 200ZM133 200A67 67 0 0 1 200 133V200Z",
)


def draw(chance: Chance) -> Picture:
    palette = chance.pick(PALETTES)
    tiles = [_tile(chance, palette, column, row) for row in range(ROWS) for column in range(COLUMNS)]
    title = Style(132, 42, 700, palette.ink, -0.02)
    artist = Style(50, 26, 400, palette.soft)
    return Picture(
        svg(ground(palette.ground), *tiles),
        (Area(60, 650, 880, 296, title, artist, down="middle", gap=20),),
    )


def _tile(chance: Chance, palette: Palette, column: int, row: int) -> str:
    back, front = chance.shuffled(palette.colours)[:2]
    turned = f"translate({column * SIZE} {row * SIZE}) rotate({90 * chance.below(4)} {SIZE / 2} {SIZE / 2})"
    return f'<g transform="{turned}"><rect width="{SIZE}" height="{SIZE}" fill="{back}"/>' + (
        path(chance.pick(FIGURES), f'fill="{front}" fill-rule="evenodd"') + "</g>"
    )
