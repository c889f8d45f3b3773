"""Histories whose times are cut to the minute, and those of the same plays with full times: each counts once."""

import io
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.clock import SECOND
from musicsvc.store.engine.store import Store
from musicsvc.store.importing import runner
from musicsvc.store.importing.files import histories
from musicsvc.store.importing.plays.plays import Plays
from musicsvc.store.importing.runner import ImportOptions
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Listener, Play, Track
from musicsvc.store.plays import verify
from musicsvc.store.plays.rollups import listeners
from tests.conftest import NOW
from tests.support.bounds import Bounds
from tests.support.examples import examples
from tests.support.history_files import write
from tests.support.import_files import import_file, quiet
from tests.support.plays_import import tally
from tests.support.undoing import undone
from tests.support.workbooks import write_xlsx

BEGIN = datetime(2024, 5, 1, 23, 50, tzinfo=UTC)
NUMBERS = count()
Import = Callable[..., ImportSummary]


class Heard(NamedTuple):
    """A play: its track, the seconds from BEGIN to its start, and the milliseconds heard."""

    track: str
    start: int
    ms: int = 180_000

    @property
    def began(self) -> datetime:
        return BEGIN + timedelta(seconds=self.start)

    @property
    def ended(self) -> datetime:
        return self.began + timedelta(milliseconds=self.ms)


def extended(plays: Sequence[Heard]) -> bytes:
    """Return the extended history of Spotify, with the times of ends."""
    return orjson.dumps(
        [
            {
                "ts": f"{each.ended:%Y-%m-%dT%H:%M:%S}Z",
                "ms_played": each.ms,
                "master_metadata_track_name": each.track,
                "master_metadata_album_artist_name": "Ann",
                "reason_end": "trackdone",
            }
            for each in plays
        ]
    )


def account(plays: Sequence[Heard]) -> bytes:
    """Return the account data of Spotify, whose ends are cut to the minute."""
    return orjson.dumps(
        [
            {
                "endTime": f"{each.ended:%Y-%m-%d %H:%M}",
                "artistName": "Ann",
                "trackName": each.track,
                "msPlayed": each.ms,
            }
            for each in plays
        ]
    )


def uts(plays: Sequence[Heard]) -> bytes:
    """Return a table of Last.fm's scrobbles, newest first, as tools make it."""
    rows = [f"{int(each.began.timestamp())},Ann,{each.track}\n" for each in reversed(plays)]
    return f"uts,artist,track\n{''.join(rows)}".encode()


def minutes(plays: Sequence[Heard]) -> bytes:
    """Return a table of the same whose times are cut to the minute."""
    return "".join(f"Ann,,{each.track},{each.began:%d %b %Y %H:%M}\n" for each in reversed(plays)).encode()


SERVICES = {"spotify": (account, extended), "lastfm": (minutes, uts)}


@pytest.fixture
def imports(store: Store, tmp_path: Path) -> Import:
    def run(content: bytes, listener: str = "me", **more: Any) -> ImportSummary:
        kind = Plays(ImportOptions(listener=listener, create_missing=True, **more))
        file, zipped = write(tmp_path / "history", content), content.startswith(b"PK")
        # Here and not in the limited program: it takes half a second to start.
        read = (
            histories.open_file(file)
            if content[:6] == b"artist"
            else histories.open_here(file, tmp_path, None, zipped=zipped)
        )
        with read as reader:
            return runner.run(store, reader, kind, now=NOW, on_progress=quiet)

    return run


def heard(store: Store, listener: str = "me") -> list[tuple[str, int]]:
    """Return the tracks of all plays of a listener, and the seconds from BEGIN to their starts."""

    def read() -> list[tuple[str, int]]:
        query = Play.select(Track.name, Play.played_at).join(Track, on=Track.id == Play.track)
        query = query.join(Listener, on=Listener.id == Play.listener)
        rows = query.where(Listener.key == listeners.opaque_key(listener)).tuples().iterator()
        return sorted((name, at // SECOND - int(BEGIN.timestamp())) for name, at in rows)

    return store.read(read).result()


def require_right_counts(store: Store) -> None:
    assert verify.run(store, check=True, on_progress=lambda _done, _total: None).differing == 0


@pytest.mark.parametrize("service", SERVICES)
def test_a_play_of_two_histories_counts_once_in_either_order(store: Store, imports: Import, service: str) -> None:
    cut, full = (form([Heard("Rag", 5), Heard("Rag", 305), Heard("Waltz", 899)]) for form in SERVICES[service])
    expected = [("Rag", 5), ("Rag", 305), ("Waltz", 899)]
    assert [tally(imports(file)) for file in (full, cut, cut, full)] == [(3, 0, 0), *[(0, 3, 0)] * 3]
    assert heard(store) == expected
    assert [tally(imports(file, "other")) for file in (cut, full, full, cut)] == [(3, 0, 0), *[(0, 3, 0)] * 3]
    assert heard(store, "other") == expected
    require_right_counts(store)


def test_two_plays_of_a_minute_and_of_two_minutes_stay_two(store: Store, imports: Import) -> None:
    plays = [Heard("Rag", at, 31_000) for at in (3, 45, 62, 179, 240)]
    imports(minutes(plays))
    assert len(heard(store)) == 4  # without seconds, two of a minute cannot be told apart
    assert tally(imports(uts(plays))) == (1, 4, 0)
    assert [at for _, at in heard(store)] == [3, 45, 62, 179, 240]
    assert tally(imports(minutes(plays))) == (0, 5, 0)


def test_a_play_beyond_the_minute_or_of_another_track_or_listener_is_another(store: Store, imports: Import) -> None:
    imports(uts([Heard("Rag", 60), Heard("Waltz", 10), Heard("Rag", -1)]))
    imports(uts([Heard("Rag", 10)]), "other")
    assert tally(imports(minutes([Heard("Rag", 0)]))) == (1, 0, 0)
    assert heard(store) == [("Rag", -1), ("Rag", 0), ("Rag", 60), ("Waltz", 10)]


def test_in_an_archive_both_histories_are_one(store: Store, imports: Import) -> None:
    plays = [Heard(f"Song {number % 7}", 200 * number) for number in range(50)]
    for names in (("a.json", "b.json"), ("b.json", "a.json")):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr(names[0], account(plays))
            archive.writestr(names[1], extended(plays))
        assert tally(imports(target.getvalue(), names[0])) == (50, 50, 0)
        assert heard(store, names[0]) == sorted((each.track, each.start) for each in plays)
    require_right_counts(store)


def test_across_batches_a_row_stands_for_one_play(store: Store, imports: Import, bounds: Bounds) -> None:
    bounds(rows_a_unit=1)
    plays = [Heard("Rag", at, 31_000) for at in (3, 45, 62)]
    for order in ((uts, minutes), (minutes, uts)):
        for form in order:
            imports(form(plays), order[0].__name__)
        assert [at for _, at in heard(store, order[0].__name__)] == [3, 45, 62]


@pytest.mark.parametrize("rows", [1, 2000])
def test_two_rows_do_not_stand_for_the_same_play(store: Store, imports: Import, bounds: Bounds, rows: int) -> None:
    bounds(rows_a_unit=rows)
    plays = [Heard("Rag", 40, 35_000), Heard("Rag", 76, 40_000)]  # the minute of the second row contains both
    imports(extended(plays[:1]))
    assert tally(imports(account(plays))) == (1, 1, 0)
    assert tally(imports(extended(plays))) == (0, 2, 0)
    assert heard(store) == [("Rag", 40), ("Rag", 76)]


def test_the_play_belongs_to_the_first_import_and_goes_with_it(store: Store, imports: Import) -> None:
    plays = [Heard("Rag", 5), Heard("Rag", 605)]  # the second begins on the next day
    cut, full = imports(account(plays)), imports(extended(plays))
    assert (full.run, cut.run) == (2, 1)
    assert undone(store, 2).plays == 0
    assert heard(store) == [("Rag", 5), ("Rag", 605)]
    assert undone(store, 1).plays == 2
    assert heard(store) == []
    require_right_counts(store)
    assert tally(imports(extended(plays))) == (2, 0, 0)
    assert tally(imports(account(plays))) == (0, 2, 0)


def test_a_dry_run_tells_what_would_happen(store: Store, imports: Import) -> None:
    plays = [Heard("Rag", 5), Heard("Rag", 305)]
    imports(account(plays[:1]))
    before = heard(store)
    predicted = imports(extended(plays), dry_run=True)
    assert heard(store) == before
    assert predicted.counts == imports(extended(plays)).counts


def sheet(plays: Sequence[Heard], form: str) -> bytes:
    rows = [f"Ann,{each.track},{each.began:{form}}\n" for each in plays]
    return f"artist,track,played_at\n{''.join(rows)}".encode()


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M+00:00"])
def test_a_table_whose_times_have_no_seconds_is_cut_to_the_minute(store: Store, imports: Import, form: str) -> None:
    plays = [Heard("Rag", 5), Heard("Rag", 305)]
    for order in (("%Y-%m-%dT%H:%M:%S", form), (form, "%Y-%m-%dT%H:%M:%S")):
        first, second = (imports(sheet(plays, each), order[0]) for each in order)
        assert (tally(first), tally(second)) == ((2, 0, 0), (0, 2, 0))
        assert heard(store, order[0]) == [("Rag", 5), ("Rag", 305)]
    assert [each.written for each in first.columns if each.field == "played_at"] == ["to the minute"]


@pytest.mark.slow
def test_times_of_a_workbook_without_seconds_are_cut_as_those_of_its_csv(store: Store, tmp_path: Path) -> None:
    def brought(name: str, *times: datetime | str) -> ImportSummary:
        rows = [("artist", "track", "played_at"), *(("Ann", "Rag", time) for time in times)]
        kind = Plays(ImportOptions(listener="me", create_missing=True))
        return import_file(store, write_xlsx(tmp_path / name, rows), kind)

    begin = BEGIN.replace(tzinfo=None)
    full = brought("full.xlsx", begin + timedelta(seconds=41), begin + timedelta(seconds=190))
    cut = brought("cut.xlsx", begin, begin + timedelta(minutes=3))
    assert (tally(full), tally(cut)) == ((2, 0, 0), (0, 2, 0))
    assert [each.written for each in cut.columns if each.field == "played_at"] == ["to the minute"]
    assert heard(store) == [("Rag", 41), ("Rag", 190)]


def test_a_table_of_which_some_times_have_seconds_is_not_cut(store: Store, imports: Import) -> None:
    imports(uts([Heard("Rag", 5)]))
    some_seconds = sheet([Heard("Rag", 0)], "%Y-%m-%d %H:%M") + b"Ann,Rag,2024-05-02T00:00:07Z\n"
    assert tally(imports(some_seconds)) == (1, 1, 0)  # of the half minute, as ever
    assert tally(imports(sheet([Heard("Rag", 60)], "%Y-%m-%d %H:%M") + b"Ann,Rag,2024-05-02T00:00:07Z\n")) == (1, 1, 0)
    assert heard(store) == [("Rag", 5), ("Rag", 60), ("Rag", 607)]


def test_clients_ids_of_a_minute_are_plays_of_their_own(store: Store, imports: Import) -> None:
    rows = [f"Ann,Rag,2024-05-01 23:50,{number}\n" for number in range(3)]
    cut = f"artist,track,played_at,client_id\n{''.join(rows)}".encode()
    assert [tally(imports(cut)) for _ in range(2)] == [(3, 0, 0), (0, 3, 0)]
    full = [f"Ann,Rag,2024-05-01T23:50:0{number}Z,id-{number}\n" for number in range(4)]
    table = f"artist,track,played_at,client_id\n{''.join(full)}".encode()
    assert [tally(imports(table)) for _ in range(2)] == [(1, 3, 0), (0, 4, 0)]
    assert [at for _, at in heard(store)] == [0, 1, 2, 3]
    assert tally(imports(cut)) == (0, 3, 0)
    require_right_counts(store)


PLAYS = some.lists(
    some.tuples(some.sampled_from(["Rag", "Waltz"]), some.integers(0, 90), some.integers(31, 150)),
    min_size=1,
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=PLAYS, shuffled=some.randoms())
def test_however_plays_come_in_they_are_those_of_the_full_history(
    store: Store, imports: Import, drawn: list[tuple[str, int, int]], shuffled: Any
) -> None:
    plays, end = list[Heard](), 0
    for track, pause, seconds in drawn:
        plays.append(Heard(track, end + pause, seconds * 1000))
        end += pause + seconds
    expected = sorted((each.track, each.start) for each in plays)
    for cut, full in SERVICES.values():
        part = [each for each in plays[1:] if shuffled.random() < 0.7] + plays[:1]
        shuffled.shuffle(part)
        for files in ((full(plays), cut(part)), (cut(part), full(plays)), (cut(part), full(part), full(plays))):
            listener = f"listener {next(NUMBERS)}"
            for file in (*files, *files):
                imports(file, listener)
            assert heard(store, listener) == expected
    require_right_counts(store)
