"""The text of measured values: their median, and in brackets the least and the greatest."""

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], digits: int = 0) -> str:
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} … {max(values):,.{digits}f})"
