"""Values that database files hold, or that processes of other versions share, and that must not change."""

import hashlib
from functools import partial
from pathlib import Path

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import tokens
from musicsvc.store.activity import log as activity_log
from musicsvc.store.catalog import identifiers, import_lock
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine import list_blocks, name_index
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play, PlayCount
from musicsvc.store.models.plays import PlayRow
from musicsvc.store.plays import ingest, subjects
from musicsvc.store.plays.ingest import WITHOUT_ID
from musicsvc.store.plays.periods import SLOT
from musicsvc.store.plays.rollups import counts, listeners
from musicsvc.store.rate_limits import sqlite
from musicsvc.store.rate_limits.sqlite import SqliteHitCounter
from musicsvc.store.schema import schema
from tests.conftest import NOW
from tests.support import databases
from tests.support.play_counts import roll_up
from tests.support.reported_plays import world


@pytest.mark.only_on("sqlite")
def test_files_have_their_application_ids(template: databases.Template, store: Store, file: Path) -> None:
    template.make_log(store.url)
    limits = file.with_name("limits.db")
    counter = SqliteHitCounter(limits, lambda: 0)
    counter.check()
    counter.close()
    found = [each.read_bytes()[68:72] for each in (file, activity_log.default_file(file), limits)]
    assert found == [b"MSVC", b"MSVL", b"MSVQ"]
    assert sqlite.VERSION == 2


def test_processes_of_all_versions_lock_the_same_numbers() -> None:
    locks = {identifiers.LOCK: b"ISRC", engagement_days.LOCK: b"LIKE", counts.LOCK: b"PLAY"}
    locks |= {import_lock.LOCK_KEY: b"msvc", schema.ADVISORY_LOCK: b"MSVC"}
    assert all(number.to_bytes(4, "big") == name for number, name in locks.items())


def test_a_key_of_the_name_index_has_the_length_before_the_id() -> None:
    assert name_index._key(7, "abc") == 3 * 2**53 + 7
    assert name_index._key(2**53 - 1, "x" * 5000) == 1023 * 2**53 + 2**53 - 1
    assert name_index.ID_MASK == 2**53 - 1


def test_a_listener_has_a_key_and_a_number_of_four_bytes() -> None:
    assert (listeners.account_key(7), listeners.opaque_key("me")) == ("account:7", "opaque:me")
    assert listeners.pack((1, 258)) == bytes((1, 0, 0, 0, 2, 1, 0, 0))
    few, many = listeners.merge([listeners.pack(range(32))]), listeners.merge([listeners.pack(range(33))])
    assert few == listeners.pack(range(32))
    assert int.from_bytes(many[:4], "little") in range(len(many) - 7, len(many) - 3)
    assert len(many) % 2 == 1


def test_kinds_slots_and_lists_keep_their_numbers() -> None:
    assert subjects.KINDS == {"track": 1, "album": 2, "artist": 3}
    assert {each.number: (each.table, each.owner, each.descending) for each in list_blocks.LISTS} == {
        1: ("album", "0", True),
        2: ("artist", "0", True),
        3: ("genre", "0", None),
        4: ("playlist", "owner_id", True),
        5: ("comment", "track_id", False),
        6: ("album_artist", "artist_id", None),
        7: ("track_artist", "artist_id", None),
        8: ("playlist_track", "playlist_id", False),
        9: ("follow", "followed_id", True),
        10: ("follow", "follower_id", True),
        11: ("message", "conversation_id", True),
        12: ("participant", "user_id", None),
        13: ("collection", "user_id", True),
        14: ("track_rank", "artist_id", True),
        15: ("track", "0", True),
        16: ("track_genre", "genre_id", True),
    }
    newest = list_blocks.NEWEST_ARTIST_TRACKS
    assert (newest.number, newest.table, newest.descending) == (7, "track_artist", True)


def test_plays_are_stored_by_half_minutes_days_and_blocks_of_32_days(store: Store) -> None:
    def play(at: int) -> None:
        (listener,) = listeners.ensure(["opaque:1"]).values()
        ingest.record([PlayRow(at // SLOT, 1, listener, WITHOUT_ID, at, None, 0)])

    store.write(world).result()
    for at in (NOW, NOW - 70 * DAY):
        store.write(partial(play, at)).result()
    roll_up(store)

    def kept() -> tuple[set[int], set[int]]:
        return {row.slot for row in Play.select()}, {row.key for row in PlayCount.select()}

    days = [(20_513 + 719_168) << 39, (20_443 + 719_168) << 39]
    block = (2 << 61) + ((20_443 + 719_168) // 32 << 39)
    keys = {first + (kind << 37) + 1 for first in (*days, block) for kind in (1, 2, 3)}
    assert store.read(kept).result() == ({59_078_880, 58_877_280}, keys)


def test_a_token_of_the_first_version_is_still_one() -> None:
    body = "msvc_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd"
    assert tokens.well_formed(f"{body}2HZ8xH")
    assert tokens.digest("msvc_") == hashlib.sha256(b"msvc_").digest()
