"""Parts of covers: SVG elements on a page of 1000 by 1000, and boxes into which text is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

SIDE = 1000
Point = tuple[float, float]


@dataclass(frozen=True)
class Style:
    """The style of a text. `most` is its largest size in points; long words may be broken if it is below `comfort`."""

    most: int
    comfort: int
    weight: int
    fill: str
    tracking: float = 0.0


@dataclass(frozen=True)
class Area:
    """A box for the title, the artist or both. `start` is the left side, or the right for titles from right to left."""

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
    """The title's first letter behind the drawing: its centre, longer side and colour, and the colour of the page."""

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
    """Return the background of the page, in a colour or gradient."""
    return f'<rect width="{SIDE}" height="{SIDE}" fill="{fill}"/>'


def gradient(name: str, *colours: str, slope: Point = (0, 1)) -> str:
    """Return a linear gradient, used as `url(#name)`, from the upper left corner of its box to the point `slope`."""
    return (
        f'<linearGradient id="{name}" x1="0" y1="0" x2="{slope[0]}" y2="{slope[1]}">{_stops(colours)}</linearGradient>'
    )


def glow(name: str, colour: str, *, strength: float = 1) -> str:
    """Return a radial gradient that fades out from its centre, used as `url(#name)`."""
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
    """Return a circle; `paint` holds the attributes of fill and stroke."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {paint}/>'


def path(data: str, paint: str) -> str:
    """Return a path; `paint` holds the attributes of fill and stroke."""
    return f'<path d="{data}" {paint}/>'


def smooth(points: list[Point]) -> str:
    """Return the SVG path data of a closed Catmull-Rom curve through the points."""
    data = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    count = len(points)
    for place in range(count):
        before, start, end, after = (points[(place + step) % count] for step in (-1, 0, 1, 2))
        first = (start[0] + (end[0] - before[0]) / 6, start[1] + (end[1] - before[1]) / 6)
        second = (end[0] - (after[0] - start[0]) / 6, end[1] - (after[1] - start[1]) / 6)
        data += f"C{first[0]:.1f} {first[1]:.1f} {second[0]:.1f} {second[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    return data + "Z"


def mixed(first: str, second: str, share: float) -> str:
    """Mix two colours `#rrggbb`; `share` (0 to 1) is the part of the second."""
    pairs = [(int(first[at : at + 2], 16), int(second[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(one + (other - one) * share):02x}" for one, other in pairs)
