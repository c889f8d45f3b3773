"""Times relative to now, in the list of tokens."""

import pytest

from musicsvc.clock import DAY, MINUTE, SECOND
from musicsvc.server.handlers.pages.developers import moment_from


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (2 * DAY, "in 2 days"),
        (90 * DAY - SECOND, "in 90 days"),
        (89 * DAY + 11 * 60 * MINUTE, "in 89 days"),
        (2 * DAY - 1, "in 48 hours"),
        (120 * MINUTE, "in 2 hours"),
        (120 * MINUTE - 1, "in 120 minutes"),
        (MINUTE, "in 1 minute"),
        (SECOND, "in 0 minutes"),
        (0, "0 minutes ago"),
        (-59 * MINUTE, "59 minutes ago"),
        (-12 * DAY, "12 days ago"),
    ],
)
def test_a_time_is_in_the_largest_unit_of_which_there_are_two(left: int, shown: str) -> None:
    assert moment_from(left) == shown
