"""Draw numbers as a line of bars of different heights."""

from collections.abc import Sequence
from itertools import pairwise

BARS = "▁▂▃▄▅▆▇█"
PLAIN = "_.:-=+*#"  # for encodings without bars


def draw(numbers: Sequence[float], width: int, encoding: str = "utf-8") -> str:
    """Return one bar per number. With more than `width` numbers, each bar shows the mean of adjacent numbers."""
    if not numbers:
        return ""
    places = min(width, len(numbers))
    ends = [place * len(numbers) // places for place in range(places + 1)]
    heights = [sum(numbers[start:end]) / (end - start) for start, end in pairwise(ends)]
    top = max(heights)
    bars = _bars(encoding)
    return "".join(bars[_step(height, top)] for height in heights)


def _step(height: float, top: float) -> int:
    """Return the index of the bar for `height`: the lowest bar only for 0, the highest bar for `top`."""
    if height <= 0:
        return 0
    return 1 + min(len(BARS) - 2, int(height / top * (len(BARS) - 1)))


def _bars(encoding: str) -> str:
    try:
        BARS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BARS
