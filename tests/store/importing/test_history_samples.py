"""Samples of listening histories that others wrote are imported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from musicsvc.errors import Failure
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from tests.conftest import NOW

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
        with histories.open_file(file) as reader:
            options = Plays(ImportOptions(listener="me", create_missing=True, **more))
            return runner.run(store, reader, options, now=NOW, on_progress=lambda _: None)

    predicted, done, again = run(dry_run=True), run(), run()
    assert (done.counts["plays"].new, done.counts["plays"].refused) == SAMPLES[name]
    assert predicted.counts == done.counts
    assert again.counts["plays"].new == 0


def test_loved_tracks_are_no_plays(shared_data: Callable[[str], Path]) -> None:
    with pytest.raises(Failure, match="lists loved tracks"):
        histories.open_file(shared_data("import_formats/lastfm_loved_tracks_1.json"))


def test_a_table_without_names_is_refused(store: Store, shared_data: Callable[[str], Path]) -> None:
    with (
        histories.open_file(shared_data("import_formats/librefm_no_header.csv")) as reader,
        pytest.raises(Failure, match="No column has the played_at"),
    ):
        runner.run(store, reader, Plays(ImportOptions(listener="me")), now=NOW, on_progress=lambda _: None)
