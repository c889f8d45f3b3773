"""Building blocks of covers: SVG elements on a page of 1000 by 1000 units, and boxes into which text is fitted."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

SIDE = 1000
Point = tuple[float, float]


class Palette(NamedTuple):
    """Colours of a cover: of the page, of what is drawn on it, of the title (`ink`) and of the artist (`soft`)."""

    ground: str
    colours: tuple[str, ...]
    ink: str
    soft: str = ""


@dataclass(frozen=True)
class Style:
    """The style of a text. `most` is its largest size in points. In sizes below `comfort`, long words may be broken."""

    most: int
    comfort: int
    weight: int
    fill: str
    tracking: float = 0.0


@dataclass(frozen=True)
class Area:
    """A text box for the title, the artist or both. `start` is the side on which the title's script begins."""

    x: int
    y: int
    width: int
    height: int
    title: Style | None = None
    artist: Style | None = None
    across: Literal["start", "center"] = "start"
    down: Literal["top", "middle", "bottom"] = "top"
    share: float = 0.36  # of the height that the artist gets at most
    gap: int = 22
    flipped: bool = False  # the artist above the title
    rule: str | None = None  # colour of a short line between title and artist
    plate: str | None = None  # colour of a background that grows with the text
    inset: int = 0


@dataclass(frozen=True)
class Giant:
    """The title's first letter, drawn large: its centre, longer side and colour, and the colour behind (`ground`)."""

    x: int
    y: int
    size: int
    fill: str
    ground: str


@dataclass(frozen=True)
class Picture:
    """A complete cover: the drawing and its text boxes."""

    svg: str
    areas: tuple[Area, ...]
    giant: Giant | None = None


def svg(*parts: str) -> str:
    """Return the elements as an SVG document."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}">{"".join(parts)}</svg>'


def ground(fill: str) -> str:
    """Return an SVG rectangle that fills the page with a colour or gradient."""
    return f'<rect width="{SIDE}" height="{SIDE}" fill="{fill}"/>'


def gradient(name: str, *colours: str, slope: Point = (0, 1)) -> str:
    """Return an SVG linear gradient for `url(#name)`, from the upper left corner to `slope` ((1, 1) is lower right)."""
    return (
        f'<linearGradient id="{name}" x1="0" y1="0" x2="{slope[0]}" y2="{slope[1]}">{_stops(colours)}</linearGradient>'
    )


def glow(name: str, colour: str, *, strength: float) -> str:
    """Return an SVG radial gradient that fades out from its centre, used as `url(#name)`."""
    stops = "".join(
        f'<stop offset="{place / 8}" stop-color="{colour}" stop-opacity="{strength * (1 - place / 8) ** 2:.3f}"/>'
        for place in range(9)
    )
    return f'<radialGradient id="{name}">{stops}</radialGradient>'


def _stops(colours: Iterable[str]) -> str:
    listed = list(colours)
    last = max(len(listed) - 1, 1)
    return "".join(f'<stop offset="{place / last:.3f}" stop-color="{one}"/>' for place, one in enumerate(listed))


def circle(x: float, y: float, radius: float, paint: str) -> str:
    """Return an SVG circle. `paint` has its attributes, such as `fill="red"`."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {paint}/>'


def path(data: str, paint: str) -> str:
    """Return an SVG path. `paint` has its attributes, such as `fill="red"`."""
    return f'<path d="{data}" {paint}/>'


def smooth(points: list[Point]) -> str:
    """Return the SVG path data of a smooth closed curve (Catmull-Rom) through the points."""
    data = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    count = len(points)
    for place in range(count):
        before, start, end, after = (points[(place + step) % count] for step in (-1, 0, 1, 2))
        first = (start[0] + (end[0] - before[0]) / 6, start[1] + (end[1] - before[1]) / 6)
        second = (end[0] - (after[0] - start[0]) / 6, end[1] - (after[1] - start[1]) / 6)
        data += f"C{first[0]:.1f} {first[1]:.1f} {second[0]:.1f} {second[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    return data + "Z"


def mixed(first: str, second: str, share: float) -> str:
    """Return the mixture of two colours `#rrggbb`. `share` is the part of the second colour, from 0 to 1."""
    pairs = [(int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(one + (other - one) * share):02x}" for one, other in pairs)
