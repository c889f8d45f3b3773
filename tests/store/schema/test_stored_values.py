"""Values that database files hold, or that processes of other versions share, and that must not change."""

import hashlib

from musicsvc.store.accounts import tokens
from musicsvc.store.catalog import identifiers
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine import list_blocks, name_index
from musicsvc.store.engine.sqlite import files
from musicsvc.store.importing.undoing import runs
from musicsvc.store.plays import periods, subjects
from musicsvc.store.plays.rollups import counts, listeners
from musicsvc.store.rate_limits import sqlite
from musicsvc.store.schema import schema


def test_files_are_recognized_by_their_application_id() -> None:
    found = {files.APPLICATION_ID: b"MSVC", files.LOG_ID: b"MSVL", sqlite.APPLICATION_ID: b"MSVQ"}
    assert {number.to_bytes(4, "big") for number in found} == set(found.values())
    assert all(number.to_bytes(4, "big") == name for number, name in found.items())
    assert sqlite.VERSION == 2


def test_processes_of_all_versions_lock_the_same_numbers() -> None:
    locks = {identifiers.LOCK: b"ISRC", engagement_days.LOCK: b"LIKE", counts.LOCK: b"PLAY"}
    locks |= {runs.LOCK_KEY: b"msvc", schema.ADVISORY_LOCK: b"MSVC"}
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
    assert (periods.SLOT, periods.SLOTS_PER_DAY) == (30_000_000, 2880)
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


def test_a_token_of_the_first_version_is_still_one() -> None:
    body = "msvc_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcd"
    assert tokens.well_formed(f"{body}2HZ8xH")
    assert tokens.digest("msvc_") == hashlib.sha256(b"msvc_").digest()
