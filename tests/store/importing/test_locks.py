"""Imports, undos and changes of ISRCs wait for each other on PostgreSQL."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from musicsvc.store.accounts import divide_rules, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.catalog import identifiers
from musicsvc.store.catalog.import_lock import lock_imports
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.undoing import made_rows, restoring, undo
from musicsvc.store.models import Follow, Play, Track, User
from musicsvc.store.plays import counting
from tests.conftest import NOW
from tests.support.import_files import import_file
from tests.support.postgres_locks import one_waits, require_begun_waits, require_wait
from tests.support.program import until
from tests.support.reported_plays import account, world
from tests.support.undoing import LABEL, OPTIONS

Run = Callable[[str], None]

pytestmark = pytest.mark.only_on("postgres")
FILES = {
    "catalog": '{"track": "Rag", "artist": "Cleo", "external_id": "1", "isrc": "GBAYE6800011"}',
    "plays": '{"external_id": "1", "isrc": "GBAYE6800011", "played_at": 1}',
    "follows": '{"follower": "ann@label.test", "followed": "ben@label.test"}',
    "playlists": '{"playlist": "Mix", "external_id": "1"}',
}
RUN, ALL = 1, 1 << 62


@pytest.fixture
def label(store: Store) -> Identity:
    store.write(world).result()
    return store.write(partial(account, reports_plays=True, email=LABEL)).result()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.fixture
def run_import(store: Store, tmp_path: Path) -> Run:
    def run(kind: str) -> None:
        file = tmp_path / f"{kind}.jsonl"
        file.write_text(FILES[kind] + "\n", "utf-8")
        import_file(store, file, OPTIONS[kind]())

    return run


@pytest.mark.usefixtures("label")
def test_imports_wait_for_each_other_and_for_undos(store: Store, run_import: Run, threads: ThreadPoolExecutor) -> None:
    for kind in FILES:
        require_begun_waits(store, lock_imports, partial(threads.submit, run_import, kind))
    steps: list[Callable[[], object]] = [
        partial(made_rows.take_back, Track, 1, "cli", RUN, ALL),
        partial(restoring.restore_tracks, RUN, ALL),
        partial(restoring.restore_albums, RUN, ALL),
        partial(restoring.forget_earlier, RUN),
        partial(undo._begin, RUN, 1, "cli"),
    ]
    for step in steps:
        require_wait(store, lock_imports, step)


@pytest.mark.usefixtures("label")
def test_an_import_stores_no_play_while_another_transaction_changes_play_counts(
    store: Store, run_import: Run, threads: ThreadPoolExecutor
) -> None:
    run_import("catalog")
    stored = []

    def begin() -> Future[None]:
        begun = threads.submit(run_import, "plays")
        until(lambda: begun.done() or one_waits(store))
        stored.append(store.read(Play.select().count).result())
        return begun

    require_begun_waits(store, counting.lock, begin)
    assert [*stored, store.read(Play.select().count).result()] == [0, 1]


@pytest.mark.usefixtures("label")
def test_an_undo_keeps_what_is_edited_while_it_runs(store: Store, run_import: Run, tmp_path: Path) -> None:
    run_import("catalog")
    renamed = {"track": "Ragtime", "artist": "Cleo", "external_id": "1"}
    run = import_file(store, tmp_path / "more.jsonl", OPTIONS["catalog"](), [renamed]).run
    assert run is not None

    def edit() -> None:
        Track.update(name="Mine").where(Track.name == "Ragtime").execute()

    require_wait(store, edit, partial(restoring.restore_tracks, run, ALL))
    assert store.read(Track.select().where(Track.name == "Mine").count).result() == 1


def test_an_import_takes_the_account_that_registers_while_it_creates_it(
    store: Store, run_import: Run, threads: ThreadPoolExecutor
) -> None:
    created: list[User] = []

    def register() -> None:
        created.append(users.create("ben@label.test", now=NOW))

    require_begun_waits(store, register, partial(threads.submit, run_import, "follows"))
    assert store.read(lambda: [*Follow.select(Follow.followed).tuples()]).result() == [(created[-1].id,)]


def test_whoever_gives_a_track_an_isrc_waits_for_the_others(
    store: Store, label: Identity, run_import: Run, threads: ThreadPoolExecutor
) -> None:
    require_wait(store, identifiers.lock, partial(identifiers.require_free, "GBAYE6800012", actor=label))
    for kind in ("catalog", "plays"):
        require_begun_waits(store, identifiers.lock, partial(threads.submit, run_import, kind))


def test_of_two_imports_that_keep_a_rule_for_one_column_the_last_counts(store: Store) -> None:
    signs = [("&",), ("feat.",)]
    require_wait(store, *(partial(divide_rules.keep, 0, {"artist": each}, 1) for each in signs))
    assert store.read(partial(divide_rules.of_account, 0)).result() == {"artist": signs[1]}
