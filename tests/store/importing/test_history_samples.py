"""Samples of listening histories that others wrote are imported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.support.import_files import import_file

SAMPLES = {
    "librefm.csv": (3, 0),
    "librefm_no_album_column.csv": (2, 0),
    "librefm_via_maloja.csv": (3, 0),
    "librefm_with_comments.csv": (3, 0),
    "listenbrainz_all_invalid.jsonl": (0, 3),
    "listenbrainz_listens.jsonl": (2, 0),
    "listenbrainz_mixed_validity.jsonl": (3, 2),
    "maloja.json": (2, 0),
    "maloja_malformed.json": (0, 3),
    "panoscrobbler.jsonl": (2, 0),
    "rockbox.scrobbler.log": (2, 1),
    "spinitron_sample.csv": (3, 2),
    "spotify_skipped_tracks.json": (1, 1),
    "spotify_streaming_2023.json": (4, 0),
    "spotify_streaming_endsong_0.json": (4, 0),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_that_others_wrote_go_in_without_being_told_what_they_are(
    store: Store, shared_data: Callable[[str], Path], name: str
) -> None:
    file = shared_data(f"import_formats/{name}")

    def run(**more: Any) -> ImportSummary:
        return import_file(store, file, Plays(ImportOptions(listener="me", create_missing=True, **more)))

    predicted, done, again = run(dry_run=True), run(), run()
    assert (done.counts["plays"].new, done.counts["plays"].refused) == SAMPLES[name]
    assert predicted.counts == done.counts
    assert again.counts["plays"].new == 0


def test_a_table_without_names_is_refused(store: Store, shared_data: Callable[[str], Path]) -> None:
    with pytest.raises(Failure, match="No column has the played_at"):
        import_file(store, shared_data("import_formats/librefm_no_header.csv"), Plays(ImportOptions(listener="me")))
