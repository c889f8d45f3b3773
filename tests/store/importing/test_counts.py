"""The counts of an import are those of what its rows name: none is negative, and they add up."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import SECOND
from musicsvc.store import opening
from musicsvc.store.accounts import users
from musicsvc.store.catalog import genres
from musicsvc.store.engine.name_keys import name_key
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.catalog.catalog import Catalog
from musicsvc.store.importing.files import readers
from musicsvc.store.importing.people.follows import Follows
from musicsvc.store.importing.people.playlists import Playlists
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions, Kind, Outcome, Pace
from musicsvc.store.importing.summary import Counts, ImportSummary
from musicsvc.store.models import Genre
from tests.conftest import NOW
from tests.support.examples import examples
from tests.support.import_files import Rows, import_file, quiet
from tests.support.merges import merge
from tests.support.undoing import require_sound

pytestmark = pytest.mark.only_on("sqlite")  # the statements are those of other imports

OWNER = "owner@owner.test"
KINDS: dict[str, Callable[[bool], Kind[Any]]] = {
    "catalog": lambda dry_run: Catalog(ImportOptions(user=OWNER, dry_run=dry_run)),
    "plays": lambda dry_run: Plays(ImportOptions(user=OWNER, listener="me", create_missing=True, dry_run=dry_run)),
    "playlists": lambda dry_run: Playlists(ImportOptions(user=OWNER, dry_run=dry_run)),
    "follows": lambda dry_run: Follows(ImportOptions(create_missing=True, dry_run=dry_run)),
}
ARTISTS = some.sampled_from(["Ann", "ann", "a\u2010ha", "a-ha", "Ann;Bea", "a-ha;a\u2010ha;Bea", None])
PEOPLE = some.sampled_from(["ann@x.test", "Ann@X.test", "7", "bea@x.test", "no address@", None])
ROW = some.fixed_dictionaries(
    {
        "track": some.sampled_from(["Rag", "rag", "Waltz", None]),
        "artist": ARTISTS,
        "album": some.sampled_from(["One", "Two", None]),
        "album_artist": ARTISTS,
        "genre": some.sampled_from(["Pop", "pop;Rock", "Jazz", None]),
        "upc": some.sampled_from(["036000291452", None, None]),
        "isrc": some.sampled_from(["GBAYE6800011", "USX9X2400001", None, None]),
        "external_id": some.sampled_from(["1", "spotify:track:1", "2", None, None]),
        "playlist": some.sampled_from(["Mix", "Other", None]),
        "playlist_external_id": some.sampled_from(["p", "spotify:playlist:p", None, None]),
        "played_at": some.sampled_from([NOW // SECOND - 60, NOW // SECOND - 600, 0]),
        "client_id": some.sampled_from(["a", "b", None]),
        "follower": PEOPLE,
        "followed": PEOPLE,
    }
)


def imported(store: Store, file: Path, kind: Kind[Any], rows: Rows, pace: int | None = None) -> ImportSummary:
    file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with closing(readers.open_file(file, "jsonl")) as reader:
        return runner.run(store, reader, kind, now=NOW, on_progress=quiet, pace=Pace(pace))


def artists(row: Any, *columns: str) -> int:
    return len({name_key(name) for each in columns for name in (row[each] or "").split(";") if name})


def named(kind: str, rows: Rows) -> dict[str, int]:
    """Return how many items of each kind the rows name."""
    count = len(rows)
    if kind == "catalog":
        return {
            "artists": sum(artists(row, "artist", "album_artist") for row in rows),
            "albums": sum(row["album"] is not None for row in rows),
            "tracks": count,
            "genres": sum(len({genres.slug(each) for each in str(row["genre"]).split(";")}) for row in rows
                          if row["genre"]),
        }  # fmt: skip
    if kind == "plays":
        return {"artists": sum(len(str(row["artist"]).split(";")) for row in rows if row["artist"]),
                "tracks": count, "plays": count}  # fmt: skip
    return {"playlists": count, "entries": count} if kind == "playlists" else {"follows": count}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(rows=some.lists(ROW, max_size=8), pace=some.sampled_from([None, 1, 3]), dry_run=some.booleans())
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_counts_are_of_what_the_accepted_rows_name(
    new_database: Callable[[], str], tmp_path: Path, kind: str, rows: Rows, pace: int | None, *, dry_run: bool
) -> None:
    with opening.connect(new_database()) as store:
        store.write(lambda: users.create(OWNER, now=NOW).id).result()
        if kind == "playlists":
            sound = [{"track": "Rag", "artist": "Ann", "external_id": "1"}, {"track": "Waltz", "artist": "a-ha;Bea"}]
            import_file(store, tmp_path / "catalog.jsonl", KINDS["catalog"](False), sound)
        for _ in range(2):
            summary = imported(store, tmp_path / "rows.jsonl", KINDS[kind](dry_run), rows, pace)

            lines = {each.line for each in summary.refused}
            accepted = [row for line, row in enumerate(rows, 1) if line not in lines]
            sums = {name: each.new + each.changed + each.repeated for name, each in summary.counts.items()}
            sums.pop("accounts", None)  # also those that a row names that is refused for the other one
            assert sums == named(kind, accepted)
            assert sum(each.refused for each in summary.counts.values()) == len(lines)
            for each in summary.counts.values():
                assert min(each.new, each.changed, each.repeated, each.refused) >= 0


def test_an_artist_of_the_album_is_counted(store: Store, tmp_path: Path) -> None:
    row = {"track": "A", "artist": "X", "album": "B", "album_artist": "Y"}

    found = [import_file(store, tmp_path / "rows.jsonl", Catalog(ImportOptions()), [row]).counts for _ in range(2)]

    assert [each["artists"] for each in found] == [Counts(new=2), Counts(repeated=2)]


def test_a_genre_of_a_row_whose_track_was_merged_is_not_made(store: Store, tmp_path: Path) -> None:
    store.write(lambda: users.create(OWNER, now=NOW).id).result()
    rows = [{"track": "Rag", "artist": "Ann", "isrc": "GBAYE6800011"}, {"track": "Waltz", "artist": "Ann"}]
    import_file(store, tmp_path / "rows.jsonl", KINDS["catalog"](False), rows)
    merge(store, "track", 2, 1)

    counts = import_file(
        store,
        tmp_path / "rows.jsonl",
        KINDS["catalog"](False),
        [rows[1] | {"genre": "Pop"}],
    ).counts

    assert (counts["tracks"], counts["genres"]) == (Counts(repeated=1), Counts(repeated=1))
    assert store.read(Genre.select().count).result() == 0
    require_sound(store)


def test_a_dry_run_whose_transaction_runs_again_counts_its_rows_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plays, "rows_a_unit", 2)
    faults = iter([False, True])
    written, original = Plays.write, store.write

    def write(self: Plays, *arguments: Any) -> Outcome:
        if next(faults, False):
            raise LookupError
        return written(self, *arguments)

    def again(unit: Any) -> Any:
        with pytest.raises(LookupError):
            original(unit).result()
        return original(unit)

    monkeypatch.setattr(Plays, "write", write)
    monkeypatch.setattr(store, "write", again)
    plays = Plays(ImportOptions(listener="me", create_missing=True, dry_run=True))
    rows = [{"artist": "Ann", "track": "A", "played_at": 1, "client_id": each} for each in "abca"]
    assert import_file(store, tmp_path / "plays.jsonl", plays, rows).counts["plays"] == Counts(3, repeated=1)
