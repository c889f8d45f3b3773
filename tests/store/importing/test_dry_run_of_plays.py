"""A dry run of `import plays` counts what the import then stores: plays, tracks and artists."""

import pytest

from musicsvc.clock import MINUTE, SECOND
from musicsvc.store.importing.summary import Counts
from tests.conftest import NOW
from tests.support.plays_import import Import, row, tally
from tests.support.refused_rows import reasons

pytestmark = pytest.mark.usefixtures("small_catalog")


def test_plays_of_one_half_minute_are_one(imported: Import) -> None:
    minute = (NOW - NOW % MINUTE) // SECOND - 60
    rows = [row(played_at=minute + seconds) for seconds in (0, 29, 30)]
    assert tally(imported(rows, dry_run=True)) == tally(imported(rows)) == (2, 1, 0)


def test_artists_are_new_once_and_no_track_is_created_without_one(imported: Import) -> None:
    played_at = NOW // SECOND - 60
    rows = [
        *({"played_at": played_at - 60 * number, "artist": "Clara", "track": "Romance"} for number in range(3)),
        {"played_at": played_at, "isrc": "GBAYE6800011", "track": "Romance"},
    ]
    for dry_run in (True, False):
        summary = imported(rows, dry_run=dry_run, create_missing=True)
        assert (summary.counts["artists"], summary.counts["tracks"]) == (Counts(1, repeated=2), Counts(1, repeated=2))
        assert reasons(summary) == [(4, "no track has this isrc; import the catalog first: GBAYE6800011")]
