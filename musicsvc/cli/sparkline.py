"""A row of numbers as a line of bars, as wide as a terminal takes it."""

from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "_.:-=+*#"  # where the output's encoding has no bars


def draw(numbers: Sequence[float], width: int, encoding: str = "utf-8") -> str:
    """A bar for each number; more numbers than the width are put together, as evenly as can be."""
    if not numbers:
        return ""
    places = min(width, len(numbers))
    ends = [place * len(numbers) // places for place in range(places + 1)]
    heights = [sum(numbers[start:end]) / (end - start) for start, end in pairwise(ends)]
    top = max(heights)
    bars = _bars(encoding)
    return "".join(bars[_step(height, top)] for height in heights)


def _step(height: float, top: float) -> int:
    """Which bar: the lowest for nothing at all alone, the highest for the top."""
    if height <= 0:
        return 0
    return 1 + min(len(BARS) - 2, int(height / top * (len(BARS) - 1)))


def _bars(encoding: str) -> str:
    try:
        BARS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BARS
