"""A cursor of the changes of the catalog misses no change, and is refused by a database that is another one."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from musicsvc.errors import Invalid
from musicsvc.server.schemas import catalog as schemas
from musicsvc.server.schemas.answers import Answer
from musicsvc.store import opening
from musicsvc.store.backups import create, restore
from musicsvc.store.catalog import changes
from musicsvc.store.catalog.change_triggers import make_triggers
from musicsvc.store.catalog.changes import Changed
from musicsvc.store.copying import copy
from musicsvc.store.engine.sql import current, fetch, is_sqlite, run, savepoint
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album, Artist, Track, TrackArtist
from tests.conftest import NOW
from tests.support.reported_plays import world

ADD = "INSERT INTO artist (name, created_at, verified) VALUES (?, 1, FALSE)"
RENAME = "UPDATE album SET name = ? WHERE id = 1"


def add(store: Store, *names: str) -> None:
    store.write(lambda: [Artist.create(name=name, created_at=NOW) for name in names]).result()


def cursor(store: Store) -> str:
    return store.read(partial(changes.since, None)).result().cursor


def since(store: Store, given: str) -> list[Changed]:
    """Return all changes after a cursor, read call by call."""
    found, more = list[Changed](), True
    while more:
        rows, given, more = store.read(partial(changes.since, given)).result()
        assert len(rows) <= changes.MOST
        found += rows
    return found


def require_refused(store: Store, given: str) -> None:
    with pytest.raises(Invalid) as caught:
        since(store, given)
    assert "Begin again without since" in caught.value.errors["since"]


@pytest.mark.only_on("postgres")
def test_a_change_is_after_every_cursor_that_was_given_out_before_its_commit(store: Store) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow() -> None:
        run(ADD, "Slow")
        entered.set()
        release.wait()

    slowly = store.write(slow)
    entered.wait()
    add(store, "Quick")
    first = cursor(store)
    add(store, "Later")
    second = cursor(store)
    release.set()
    slowly.result()
    names = dict(store.read(partial(fetch, "SELECT id, name FROM artist")).result())
    told = [[names[row.id] for row in since(store, given)] for given in (first, second)]
    assert told == [["Later", "Slow"], ["Slow"]]


@pytest.mark.only_on("postgres")
@pytest.mark.slow
def test_nothing_is_missed_while_many_transactions_overlap(store_url: str) -> None:
    done = threading.Event()
    followed: list[Changed] = []

    def work(store: Store, number: int) -> None:
        for turn in range(40):
            names = [f"{number} {turn} {name}" for name in "abc"]

            def unit(names: list[str] = names) -> None:
                for name in names:
                    run(ADD, name)
                    fetch("SELECT pg_sleep(random() / 100)")
                run(RENAME, names[0])

            store.write(unit).result()

    def follow(store: Store, given: str) -> None:
        more = True
        while more or not done.is_set():
            last = done.is_set()
            rows, given, more = store.read(partial(changes.since, given)).result()
            followed.extend(rows)
            more = more or not last

    with opening.connect(store_url) as one, opening.connect(store_url) as other, ThreadPoolExecutor(7) as threads:
        one.write(lambda: Album.create(name="Album", created_at=NOW)).result()
        following = threads.submit(follow, other, cursor(one))
        working = [threads.submit(work, (one, other)[number % 2], number) for number in range(6)]
        for each in working:
            each.result()
        done.set()
        following.result()
        made = one.read(lambda: {row.id for row in Artist.select(Artist.id)}).result()
    assert len(made) == 6 * 40 * 3
    assert {row.id for row in followed if row.noun == "artist"} == made
    assert sum(row.noun == "album" for row in followed) > 3


@pytest.mark.only_on("postgres")
def test_a_commit_does_not_read_what_earlier_ones_left_until_a_vacuum(store: Store) -> None:
    def unit() -> list[tuple[int, int]]:
        run(ADD, "One")
        run("SET CONSTRAINTS ALL IMMEDIATE")  # as the commit does
        reads = "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'catalog_note'"
        return [*map(tuple, fetch(reads))]

    assert store.write(unit).result() == [(0, 1)]


def test_an_object_is_told_once_with_its_last_state(store: Store) -> None:
    store.write(world).result()
    before = cursor(store)
    add(store, "New", "Gone")
    store.write(lambda: Artist.update(name="Renamed").where(Artist.name == "New").execute()).result()
    middle = cursor(store)
    store.write(lambda: Artist.update(name="Again").where(Artist.name == "Renamed").execute()).result()
    store.write(lambda: Artist.delete().where(Artist.name == "Gone").execute()).result()
    assert since(store, before) == [Changed("artist", 3, "created", None), Changed("artist", 4, "deleted", None)]
    assert since(store, middle) == [Changed("artist", 3, "updated", None), Changed("artist", 4, "deleted", None)]
    assert since(store, cursor(store)) == []


@pytest.mark.on_both
def test_parts_that_are_added_with_an_object_take_no_position_of_their_own_and_later_ones_do(store: Store) -> None:
    store.write(world).result()
    before, last = cursor(store), store.read(changes.last).result()

    def unit() -> None:
        Album.create(name="New", created_at=NOW)
        for _ in range(3):
            Track.create(name="New", duration=1, album=2, created_at=NOW)
        for artist in (1, 2):
            TrackArtist.create(track=4, artist=artist, position=artist)

    store.write(unit).result()
    assert store.read(changes.last).result() == last + 4
    told = [Changed("album", 2, "created", None), *(Changed("track", each, "created", None) for each in (4, 5, 6))]
    assert sorted(since(store, before), key=lambda row: (row.noun, row.id)) == told
    middle = cursor(store)
    store.write(lambda: TrackArtist.create(track=5, artist=2, position=0)).result()
    assert since(store, middle) == [Changed("track", 5, "updated", None)]
    store.write(lambda: Track.create(name="Later", duration=1, album=2, created_at=NOW)).result()
    told = [Changed("album", 2, "updated", None), Changed("track", 7, "created", None)]
    assert sorted(since(store, middle)[1:], key=lambda row: row.noun) == told


def test_what_is_rolled_back_is_no_change(store: Store) -> None:
    before = cursor(store)

    def unit() -> None:
        with suppress(ZeroDivisionError), savepoint():
            run(ADD, "Never")
            raise ZeroDivisionError
        run(ADD, "Ever")

    store.write(unit).result()
    (row,) = since(store, before)
    assert store.read(lambda: Artist.get_by_id(row.id).name).result() == "Ever"


def test_more_changes_than_fit_come_in_several_calls(store: Store) -> None:
    before = cursor(store)
    add(store, *map(str, range(2 * changes.MOST + 1)))
    found = since(store, before)
    assert [row.id for row in found] == [*range(1, 2 * changes.MOST + 2)]
    assert {row.change for row in found} == {"created"}
    first = store.read(partial(changes.since, before)).result()
    assert (len(first.rows), first.has_more) == (changes.MOST, True)


@pytest.mark.on_both
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE track SET likes_count = 7, reposts_count = 8, edited_at = 9, fingerprint_status = 'failed'", []),
        ("UPDATE track SET name = name", []),
        ("INSERT INTO track_plays (track_id, plays) VALUES (1, 5)", []),
        ("UPDATE artist SET description = 'x', manager_id = NULL", []),
        ("UPDATE artist SET name = 'x' WHERE id = 1", ["artist 1"]),
        ("UPDATE album SET image = 'https://img.test/a.png'", ["album 1", "track 2"]),  # track 1 has one of its own
        ("UPDATE track SET album_id = 1 WHERE id = 3", ["album 1", "track 3"]),
        ("UPDATE track_artist SET position = 5 WHERE track_id = 2 AND artist_id = 1", ["track 2"]),
        ("UPDATE track_artist SET track_id = 1 WHERE artist_id = 2 AND track_id = 3", ["track 1", "track 3"]),
        ("DELETE FROM artist WHERE id = 1", ["artist 1", "track 1", "track 2"]),
        ("DELETE FROM album", ["album 1", "track 1", "track 2"]),
        ("DELETE FROM track WHERE id = 2", ["album 1", "track 2"]),
    ],
)
def test_what_the_api_shows_is_told_and_counters_are_not(store: Store, statement: str, told: list[str]) -> None:
    store.write(world).result()
    store.write(lambda: Track.update(image="https://img.test/own.png").where(Track.id == 1).execute()).result()
    before = cursor(store)
    store.write(partial(run, statement)).result()
    assert sorted({f"{row.noun} {row.id}" for row in since(store, before)}) == told


# Keys of responses that are no columns of the row: links, whose tables have triggers of their own, and counters.
NO_COLUMNS = {
    *("id", "created_at", "model_type", "duration_text", "artists", "tracks", "genres", "tags"),
    *("plays", "likes_count", "reposts_count", "albums_count", "tracks_count"),
}
SHOWN: dict[str, type[Answer]] = {"artist": schemas.Artist, "album": schemas.Album, "track": schemas.Track}


def followed(noun: str) -> set[str]:
    """Return the columns whose changes the trigger of the current database notes."""
    trigger = f"change_{noun}_update"
    if is_sqlite():
        ((text,),) = fetch("SELECT sql FROM sqlite_schema WHERE name = ?", trigger)
        return {*text.partition(" UPDATE OF ")[2].partition(" ON ")[0].split(", ")}
    named = "SELECT event_object_column FROM information_schema.triggered_update_columns WHERE trigger_name = ?"
    return {column for (column,) in fetch(named, trigger)}


@pytest.mark.parametrize("noun", SHOWN)
def test_the_triggers_follow_every_column_that_the_api_shows(store: Store, noun: str) -> None:
    columns = store.read(partial(followed, noun)).result()
    forgotten = SHOWN[noun].model_fields.keys() - NO_COLUMNS - columns
    assert not forgotten, (
        f"Responses with {noun}s have {', '.join(sorted(forgotten))}, but GET /changes does not list {noun}s whose"
        f" {' or '.join(sorted(forgotten))} changes. Let its row in musicsvc/store/catalog/fields.py say that it is"
        f' shown, and let the migration that adds the column call make_triggers(db, "{noun}") after it.'
    )
    assert columns <= SHOWN[noun].model_fields.keys(), "the triggers follow a column that no response shows"


def test_triggers_made_again_follow_a_column_that_was_added_since(store: Store) -> None:
    """A migration of before a column leaves it out; the one that adds it makes the triggers of its table again."""

    def rename(old: str, new: str, *tables: str) -> set[str]:
        run(f"ALTER TABLE track RENAME COLUMN {old} TO {new}")
        make_triggers(current(), *tables)
        return followed("track")

    store.write(world).result()
    before = store.read(partial(followed, "track")).result()
    assert store.write(partial(rename, "explicit", "later")).result() == before - {"explicit"}
    assert store.write(partial(rename, "later", "explicit", "track")).result() == before
    given = cursor(store)
    store.write(partial(run, "UPDATE track SET explicit = TRUE WHERE id = 1")).result()
    assert since(store, given) == [Changed("track", 1, "updated", None)]


@pytest.mark.only_on("sqlite")
def test_a_cursor_from_before_a_restore_is_refused_even_when_there_are_newer_changes(
    file: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{file}"
    with opening.connect(url) as store:
        add(store, "Kept")
        backup = create.create(file, tmp_path / "backup.db").file
        add(store, "Lost")
        before = cursor(store)
    restore.restore(backup, file, now=NOW)
    with opening.connect(url) as store:
        require_refused(store, before)
        add(store, "Other", "Another")
        require_refused(store, before)
        assert since(store, cursor(store)) == []


def test_a_copy_refuses_cursors_and_gives_out_its_own(
    store_url: str, new_database: Callable[..., str], tmp_path: Path
) -> None:
    targets = {new_database(migrated=False), f"sqlite:///{tmp_path / 'copy' / 'musicsvc.db'}"}
    with opening.connect(store_url) as store:
        add(store, "One", "Two")
        before = cursor(store)
    for target in targets:
        with copy.connect(store_url) as source:
            assert copy.copy(source, target).complete
        with opening.connect(target) as copied:
            require_refused(copied, before)
            own = cursor(copied)
            add(copied, "Three", "Four", "Five")
            assert [row.id for row in since(copied, own)] == [3, 4, 5]
            require_refused(copied, before)


@pytest.mark.only_on("postgres")
def test_the_same_rows_in_another_database_refuse_a_cursor(store: Store, new_database: Callable[..., str]) -> None:
    before = cursor(store)
    epoch = "SELECT value FROM change_epoch"
    with opening.connect(new_database()) as other:
        same = [opened.read(partial(fetch, epoch)).result() for opened in (store, other)]
        assert same[0] == same[1]
        require_refused(other, before)


@pytest.mark.only_on("postgres")
@pytest.mark.slow
def test_a_standby_that_becomes_the_primary_refuses_a_cursor() -> None:
    from tests.support.replication import replicated  # noqa: PLC0415 - needs psycopg

    with replicated() as servers:
        with opening.connect(servers.url) as store:
            add(store, "One")
            before = cursor(store)
        servers.on_standby("SELECT pg_promote()")
        servers.on_standby("CHECKPOINT")  # as the server itself does soon
        with opening.connect(servers.read_url) as store:
            require_refused(store, before)
            own = cursor(store)
            add(store, "Two")
            assert [row.change for row in since(store, own)] == ["created"]


def test_a_cursor_beyond_the_last_change_is_refused(store: Store) -> None:
    add(store, "One", "Two")
    before = cursor(store)
    store.write(lambda: run("DELETE FROM catalog_change WHERE position = 2")).result()
    require_refused(store, before)
