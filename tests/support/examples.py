"""Number of examples of tests with random data."""

import hypothesis


def examples(count: int) -> int:
    """Return `count` with `--long`, and two fifths of it without: the same few in every run."""
    return count if hypothesis.settings.get_current_profile_name() == "long" else count * 2 // 5
