"""Number of examples of tests with random data."""

import hypothesis

ON_POSTGRES = "quick on PostgreSQL"


def fewer_on_postgres(count: int) -> int:
    """Return `count`, and two fifths of it on PostgreSQL, where an example takes five times as long.

    The same examples of the same seed have been tried on SQLite, and the stores differ in a few statements only.
    """
    return count * 2 // 5 if hypothesis.settings.get_current_profile_name() == ON_POSTGRES else count
