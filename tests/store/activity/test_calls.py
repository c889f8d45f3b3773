"""The activity log: filters, pruning in slices, repair of the file."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from musicsvc.errors import Failure
from musicsvc.store.activity import calls
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity.calls import Entry, Filter
from musicsvc.store.activity.log import Log
from musicsvc.store.engine import sql
from musicsvc.store.engine.sqlite import files
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Activity
from tests.support.bounds import Bounds

sqlite = pytest.mark.only_on("sqlite")
PLAIN = Entry(
    at=1_000,
    request_id="r1",
    account_id=1,
    token_id=2,
    address="127.0.0.1",
    method="GET",
    route="/api/v1/playlists/{playlist_id}",
    resource="playlists/7",
    status=200,
    retry_after=None,
    milliseconds=1.25,
    size=80,
    limits_apply=True,
    private=True,
)


def write(log: Store, *entries: Entry) -> None:
    log.write(lambda: calls.add(entries)).result()


def test_the_calls_of_tokens_are_counted_from_a_time_on(log: Log) -> None:
    at = (999, 1_000, 1_001, 1_002)
    write(log, *(PLAIN._replace(at=each, token_id=2) for each in at), PLAIN._replace(token_id=3))
    write(log, PLAIN._replace(token_id=None), PLAIN._replace(token_id=4), PLAIN._replace(token_id=5, at=999))
    counts = log.read(lambda: calls.count_by_token([2, 3, 5, 6], 1_000)).result()
    assert counts == {2: 3, 3: 1}


def found(log: Store, limit: int = 100, **wanted: Any) -> list[Entry]:
    return log.read(lambda: calls.find(Filter(**wanted), limit=limit)).result()


def test_entries_are_found_oldest_first_and_a_limit_keeps_the_newest(log: Log) -> None:
    bare = Entry(5, "r2", None, None, "", "", None, None, 400, None, 0.0, 0, limits_apply=False, private=False)
    limited = PLAIN._replace(at=3_000, status=429, retry_after=17, request_id="r3")
    write(log, limited, PLAIN, bare)

    assert found(log) == [bare, PLAIN, limited]
    assert found(log, limit=2) == [PLAIN, limited]
    assert all(isinstance(flag, bool) for entry in found(log) for flag in (entry.limits_apply, entry.private))


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"account_id": 1}, ["a", "b"]),
    ({"token_id": 3}, ["c"]),
    ({"address": "10.0.0.1"}, ["b"]),
    ({"request_id": "c"}, ["c"]),
    ({"method": "POST"}, ["d"]),
    ({"route": "albums"}, ["c"]),
    ({"route": "%"}, []),
    ({"statuses": (400, 499)}, ["b", "d"]),
    ({"statuses": (429, 429)}, ["d"]),
    ({"since": 20, "until": 40}, ["b", "c"]),
    ({"account_id": 1, "statuses": (400, 499)}, ["b"]),
]


def test_each_filter_selects_its_entries(log: Log) -> None:
    write(
        log,
        PLAIN._replace(at=10, request_id="a"),
        PLAIN._replace(at=20, request_id="b", status=404, address="10.0.0.1"),
        PLAIN._replace(at=30, request_id="c", account_id=2, token_id=3, route="/api/v1/albums"),
        PLAIN._replace(at=40, request_id="d", account_id=None, token_id=None, status=429, method="POST"),
    )

    for wanted, expected in FILTERS:
        assert (wanted, [entry.request_id for entry in found(log, **wanted)]) == (wanted, expected)


def test_the_entries_of_tokens_are_read_by_an_index_and_oldest_first(log: Log) -> None:
    write(log, *(PLAIN._replace(at=at, token_id=at % 4) for at in (9, 7, 5, 3, 1, 2)))

    found = log.read(lambda: calls.of_tokens({1, 3}, 3)).result()

    assert [entry.at for entry in found] == [3, 5, 7, 9]


@sqlite
def test_no_query_reads_the_whole_log(log: Log) -> None:
    def plan(query: Any) -> str:
        text, parameters = query.sql()
        return str([row[3] for row in sql.current().execute_sql(f"EXPLAIN QUERY PLAN {text}", parameters)])

    def plans() -> list[str]:
        newest = Activity.at.desc(), Activity.id.desc()
        filters: list[dict[str, Any]] = [
            {"account_id": 1},
            {"token_id": 1},
            {"address": "a"},
            {"since": 1},
            {"statuses": (200, 299)},
            {"statuses": (400, 499)},
        ]
        ordered = [plan(calls._select(Filter(**wanted)).order_by(*newest)) for wanted in filters]
        return [plan(calls._select(Filter(request_id="r"))), *ordered]

    shown_plans = log.read(plans).result()
    assert "activity_refused" in shown_plans[-1]
    for shown in shown_plans:
        assert "USING INDEX" in shown
        assert "TEMP B-TREE" not in shown


def test_the_log_is_replayed_whole_in_slices(log: Log, bounds: Bounds) -> None:
    bounds(calls_slice=3)
    write(log, *(PLAIN._replace(at=at // 4, request_id=str(at)) for at in range(20)))

    assert [int(entry.request_id) for entry in calls.replay(log)] == list(range(20))
    assert [int(entry.request_id) for entry in calls.replay(log, Filter(since=2, until=3))] == [8, 9, 10, 11]


def test_entries_after_an_id_come_in_the_order_of_writing(log: Log) -> None:
    write(log, PLAIN._replace(at=50))
    last = log.read(calls.last_id).result()
    write(log, PLAIN._replace(at=40), PLAIN._replace(at=30, status=500))

    later = log.read(lambda: calls.written_after(last)).result()

    assert [entry.at for _, entry in later] == [40, 30]
    assert [key for key, _ in later] == [last + 1, last + 2]
    assert len(log.read(lambda: calls.written_after(last, Filter(statuses=(500, 599)))).result()) == 1


def test_old_entries_go_a_slice_at_a_time(log: Log) -> None:
    write(log, *(PLAIN._replace(at=at) for at in range(10)))

    gone = [log.write(lambda: calls.prune(7, limit=3)).result() for _ in range(4)]

    assert gone == [3, 3, 1, 0]
    assert [entry.at for entry in found(log)] == [7, 8, 9]


def test_a_dropped_index_is_a_problem_and_a_missing_log_is_not(store: Store) -> None:
    if store.url.startswith("sqlite:///"):
        assert activity_log.check(store.url) == []
    activity_log.create(store.url)
    with activity_log.build(store.url) as log:
        log.prepare()
        log.write(lambda: sql.current().execute_sql("DROP INDEX activity_address") and None).result()

    assert activity_log.check(store.url) == ["activity log: add index activity (address, at)"]


@sqlite
def test_a_log_that_cannot_be_read_is_a_problem(store: Store, tmp_path: Path) -> None:
    activity_log.create(store.url, tmp_path / "calls.db")
    for damage in ("torn", "newer"):
        spoil(tmp_path / "calls.db", damage)
        (problem,) = activity_log.check(store.url, tmp_path / "calls.db")
        assert problem.startswith("activity log: ")
        (tmp_path / "calls.db").unlink()
        activity_log.create(store.url, tmp_path / "calls.db")


@sqlite
def test_a_missing_file_is_created_and_the_files_of_the_log_are_for_their_owner_alone(
    store: Store, tmp_path: Path
) -> None:
    default = activity_log.default_file(Path(store.url.removeprefix("sqlite:///")))
    default.unlink()
    file = tmp_path / "other disk" / "calls.db"
    with activity_log.build(store.url, file) as log:
        log.prepare()
        log.prepare()
        write(log, PLAIN)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (file.parent, *file.parent.iterdir())}
    assert {file.name, f"{file.name}-wal", f"{file.name}.lock"} < set(modes)
    assert (modes.pop(file.parent.name), set(modes.values())) == (0o700, {0o600})
    assert not default.exists()


@sqlite
def test_databases_of_one_folder_have_separate_logs() -> None:
    assert activity_log.default_file(Path("data/musicsvc.db")) == Path("data/activity.db")
    assert activity_log.default_file(Path("data/other.db")) == Path("data/other-activity.db")


@sqlite
@pytest.mark.parametrize("damage", ["empty", "text", "torn", "cut", "newer", "older"])
def test_an_unusable_log_is_renamed_and_a_new_one_created(
    store: Store, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "activity.db"
    with activity_log.build(store.url, file) as log:
        log.prepare()
        write(log, *[PLAIN] * 2_000)
    spoil(file, damage)
    before = file.read_bytes()

    with activity_log.build(store.url, file) as log:
        log.prepare()
        write(log, PLAIN)
        assert found(log) == [PLAIN]

    assert file.with_name("activity.db.aside-1").read_bytes() == before
    reason = "was created by another version of musicsvc" if damage in {"newer", "older"} else "is damaged"
    assert f"the activity log {file} {reason}; renamed it to" in caplog.text


def spoil(file: Path, damage: str) -> None:
    whole = file.read_bytes()
    if damage in {"newer", "older"}:
        connection = apsw.Connection(str(file))
        if damage == "newer":
            connection.execute("INSERT INTO activity_migration (name, oldest_program) VALUES ('9999_next', '9.9.0')")
        else:
            connection.execute("DELETE FROM activity_migration WHERE name > '0002'")
            connection.execute("UPDATE activity_migration SET name = '0001_activity'")
        connection.close()
        return
    ends = {"empty": b"", "text": b"12:00 GET /\n" * 99, "torn": whole[:8192] + b"\xff" * 8192 + whole[16_384:]}
    file.write_bytes(ends.get(damage, whole[: len(whole) // 2]))


@sqlite
def test_damage_found_while_writing_leads_to_a_new_file(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "activity.db"
    with activity_log.build(store.url, file) as log, activity_log.build(store.url, file) as other:
        log.prepare()
        other.prepare()

        log.replace()
        other.replace()
        write(log, PLAIN)
        write(other, PLAIN)

        assert len(found(log)) == 2
    assert [path.name for path in tmp_path.glob("*.aside-*") if path.suffix[-1].isdigit()] == ["activity.db.aside-1"]


@sqlite
def test_a_folder_that_was_moved_is_not_created_again(store: Store, tmp_path: Path) -> None:
    folder, aside = tmp_path / "logs", tmp_path / "aside"
    with activity_log.build(store.url, folder / "activity.db") as log:
        log.prepare()
        folder.rename(aside)
        with pytest.raises(Failure, match=r"^The folder of the activity log .*activity\.db was moved or deleted\.$"):
            log.prepare()
        assert not folder.exists()
        aside.rename(folder)
        log.prepare()
        write(log, PLAIN)
        assert found(log) == [PLAIN]


@sqlite
def test_a_deleted_file_is_created_again(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "activity.db"
    with activity_log.build(store.url, file) as log:
        log.prepare()
        file.unlink()
        with pytest.raises(Failure):
            write(log, PLAIN)

        log.prepare()
        write(log, PLAIN)

        assert found(log) == [PLAIN]


@sqlite
def test_the_database_and_files_of_other_programs_stay_unchanged(store: Store, tmp_path: Path) -> None:
    data = Path(store.url.removeprefix("sqlite:///"))
    other = tmp_path / "other.db"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()

    for file in (data, other):
        before = file.read_bytes()
        with pytest.raises(Failure, match="is not an activity log and was left unchanged"):
            activity_log.build(store.url, file).prepare()
        assert file.read_bytes() == before
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    with pytest.raises(Failure, match="is not an activity log and was left unchanged"):
        activity_log.build(store.url, device).prepare()
    assert device.is_char_device()

    with activity_log.build(store.url) as log:
        log.prepare()
    with pytest.raises(Failure, match="belongs to another program"):
        files.examine(data.with_name("activity.db"))
