"""Number of examples of tests with random data."""

import hypothesis

FIFTHS = {"long": 5, "quick": 2, "postgres": 1}


def examples(count: int) -> int:
    """Return `count` with `--long`, and a part of it without: the same few in every run."""
    return count * FIFTHS[hypothesis.settings.get_current_profile_name()] // 5
