"""Effects of migrations on the rows of an old database."""

from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.errors import NotFound
from musicsvc.store import opening
from musicsvc.store.accounts import password_links, tokens, users
from musicsvc.store.engagement import engagement_days
from musicsvc.store.engine.binding import current
from musicsvc.store.engine.sql import fetch
from musicsvc.store.importing.undoing import runs, undo
from musicsvc.store.plays import verify
from musicsvc.store.plays.periods import Window
from musicsvc.store.plays.rollups import counts, histograms, reader
from musicsvc.store.plays.subjects import TRACK
from musicsvc.store.schema import schema
from musicsvc.store.security import security_events, sessions
from musicsvc.store.security.security_events import Event

Old = Callable[[str, str], str]

COLLABORATIONS = """
INSERT INTO account (id, email, email_key, display_name, created_at) VALUES
    (1, 'ann@label.test', 'ann@label.test', 'Ann', 1), (2, 'ben@label.test', 'ben@label.test', 'Ben', 2),
    (3, 'cleo@label.test', 'cleo@label.test', 'Cleo', 3), (4, 'dora@label.test', 'dora@label.test', 'Dora', 4);
INSERT INTO playlist (id, owner_id, name, collaborative, created_at) VALUES
    (1, 1, 'Switched off', '0', 5), (2, 1, 'Shared', '1', 6), (3, 1, 'Never shared', '0', 7);
INSERT INTO playlist_invite (playlist_id, user_id, state, created_at, expires_at, answered_at) VALUES
    (1, 2, 'accepted', 8, 9, 8), (1, 3, 'pending', 8, 9, NULL), (1, 4, 'declined', 8, 9, 8),
    (2, 2, 'accepted', 8, 9, 8), (2, 3, 'pending', 8, 9, NULL), (2, 4, 'declined', 8, 9, 8)
"""

LIKES = """
INSERT INTO account (id, email, email_key, display_name, created_at) VALUES
    (1, 'ann@label.test', 'ann@label.test', 'Ann', 1), (2, 'ben@label.test', 'ben@label.test', 'Ben', 2);
INSERT INTO artist (id, name, created_at) VALUES (1, 'Trio', 1), (2, 'Solo', 2);
INSERT INTO album (id, name, created_at) VALUES (5, 'Suite', 3);
INSERT INTO track (id, name, duration, album_id, currency, licensing_type, exclusive_status, fingerprint_status,
    created_at) VALUES (7, 'Air', 1, 5, 'USD', 'both', 'sold', 'failed', 4),
    (8, 'Gigue', 2, NULL, 'EUR', 'both', 'available', 'failed', 5);
INSERT INTO track_artist (track_id, artist_id, position) VALUES (7, 1, 0), (7, 2, 1), (8, 2, 0);
INSERT INTO track_like (track_id, user_id, created_at) VALUES
    (7, 1, 86400000000), (7, 2, 86399999999), (8, 2, 172799999999);
INSERT INTO track_repost (track_id, user_id, created_at) VALUES (7, 2, 86400000001), (8, 1, 864000000000)
"""

TOKEN = """
INSERT INTO account (id, email, email_key, display_name, created_at) VALUES
    (1, 'ann@label.test', 'ann@label.test', 'Ann', 1);
INSERT INTO token (user_id, name, digest, last_four, created_at, expires_at) VALUES
    (1, 'laptop', CAST('0123456789abcdef0123456789abcdef' AS {blob}), 'wxyz', 2, 3)
"""

EVENTS = """
INSERT INTO account (id, email, email_key, display_name, password_hash, created_at) VALUES
    (1, 'ann@label.test', 'ann@label.test', 'Ann', 'hash', 1), (2, 'ben@label.test', 'ben@label.test', 'Ben', NULL, 2);
INSERT INTO security_event (at, kind, account_id, actor, reason) VALUES
    (1, 'account.created', 1, 'cli', 'administrator'), (2, 'account.created', 2, 'api', NULL)
"""


def test_collaborators_of_playlists_that_are_not_collaborative_do_not_return(old: Old) -> None:
    url = old("0007_quotas", COLLABORATIONS)
    applied = schema.upgrade(url)
    assert applied[0] == "0008_collaborations"

    def invites() -> list[tuple[int, int, str]]:
        query = "SELECT playlist_id, user_id, state FROM playlist_invite ORDER BY playlist_id, user_id"
        return [tuple(row) for row in current().execute_sql(query).fetchall()]

    with opening.connect(url) as store:
        assert store.read(invites).result() == [
            (1, 4, "declined"),
            (2, 2, "accepted"),
            (2, 3, "pending"),
            (2, 4, "declined"),
        ]
        assert store.read(schema.problems).result() == []


def test_tracks_and_albums_of_earlier_versions_have_no_identifiers(old: Old) -> None:
    url = old("0019_plays_of_days", LIKES)
    assert "0020_identifiers" in schema.upgrade(url)

    def rows() -> list[tuple[object, ...]]:
        query = "SELECT id, isrc, track_number, disc_number, explicit FROM track ORDER BY id"
        return [tuple(row) for text in (query, "SELECT id, upc, label FROM album") for row in fetch(text)]

    with opening.connect(url) as store:
        assert store.read(rows).result() == [(7, *[None] * 4), (8, *[None] * 4), (5, None, None)]
        assert store.read(schema.problems).result() == []


PLAYS = """
INSERT INTO listener (id, key) VALUES (1, 'opaque:a');
INSERT INTO play (slot, track_id, listener_id, client_key, played_at, duration_ms, reporter)
    VALUES (7, 8, 1, <empty>, 210000000, NULL, 0), (9, 8, 1, <empty>, 270000000, 5, 3)
"""


def test_plays_of_earlier_versions_are_of_no_import_that_can_be_undone(
    old: Old, request: pytest.FixtureRequest
) -> None:
    empty = "X''" if request.config.getoption("--store") == "sqlite" else "''"
    url = old("0016_password_links", PLAYS.replace("<empty>", empty))
    assert "0017_imports" in schema.upgrade(url)

    def plays() -> list[tuple[int | None, ...]]:
        query = "SELECT slot, track_id, reporter, duration_ms, import_id, named FROM play ORDER BY slot"
        return [tuple(row) for row in current().execute_sql(query).fetchall()]

    with opening.connect(url) as store:
        assert store.read(plays).result() == [(7, 8, 0, None, None, None), (9, 8, 3, 5, None, None)]
        assert store.read(runs.list_all).result() == []
        with pytest.raises(NotFound, match="before this list existed"):
            undo.undo(store, 1, now=1, on_progress=lambda _done, _total: None)
        assert store.read(schema.problems).result() == []


def test_plays_of_earlier_versions_count_in_windows_that_end_within_a_day(
    old: Old, request: pytest.FixtureRequest
) -> None:
    empty = "X''" if request.config.getoption("--store") == "sqlite" else "''"
    url = old("0018_histograms", PLAYS.replace("<empty>", empty))
    assert "0019_plays_of_days" in schema.upgrade(url)

    with opening.connect(url) as store:
        for seconds, plays in ((210, 0), (211, 1), (271, 2)):
            part = Window("", 0, 0, seconds=seconds)
            found = store.read(partial(reader.of_last_day, TRACK, [8], part)).result().get(8, [])
            assert (sum(count for count, _ in found), {packed[:4] for _, packed in found}) == (
                plays,
                {b"\1\0\0\0"} if plays else set(),
            )
        assert store.read(schema.problems).result() == []


def test_likes_and_reposts_given_before_are_counted_by_day(old: Old) -> None:
    url = old("0010_table_versions", LIKES)
    assert "0011_engagement_days" in schema.upgrade(url)

    def days() -> list[tuple[int, ...]]:
        query = "SELECT kind, subject, day, likes, reposts FROM engagement_day ORDER BY kind, subject, day"
        return [tuple(row) for row in current().execute_sql(query).fetchall()]

    with opening.connect(url) as store:
        assert store.read(days).result() == [
            (1, 7, 0, 1, 0),
            (1, 7, 1, 1, 1),
            (1, 8, 1, 1, 0),
            (1, 8, 10, 0, 1),
            (2, 5, 0, 1, 0),
            (2, 5, 1, 1, 1),
            (3, 1, 0, 1, 0),
            (3, 1, 1, 1, 1),
            (3, 2, 0, 1, 0),
            (3, 2, 1, 2, 1),
            (3, 2, 10, 0, 1),
        ]
        assert store.read(engagement_days.wrong).result() == []
        assert store.read(schema.problems).result() == []


def test_tokens_created_before_may_write(old: Old, request: pytest.FixtureRequest) -> None:
    store_kind = request.config.getoption("--store")
    url = old("0014_report_links", TOKEN.format(blob="BLOB" if store_kind == "sqlite" else "BYTEA"))
    assert "0015_token_scope" in schema.upgrade(url)

    with opening.connect(url) as store:
        found = store.read(lambda: [(token.name, token.scope) for token in tokens.list()]).result()
        assert found == [("laptop", "read-write")]
        assert store.read(schema.problems).result() == []


def test_security_events_of_before_have_no_administrator_and_accounts_get_links(old: Old) -> None:
    url = old("0013_track_rank", EVENTS)
    assert "0016_password_links" in schema.upgrade(url)

    with opening.connect(url) as store:
        assert store.read(lambda: security_events.find(limit=9)).result() == [
            Event(1, "account.created", 1, None, "cli", "administrator", None),
            Event(2, "account.created", 2, None, "api", None, None),
        ]
        link = store.write(lambda: password_links.create(users.get(2), now=3)).result()
        assert store.read(lambda: password_links.find(link.secret, now=4).email).result() == "ben@label.test"
        assert store.read(schema.problems).result() == []


def test_accounts_of_before_can_sign_in_and_are_signed_out_with_a_new_password(old: Old) -> None:
    url = old("0020_identifiers", EVENTS)
    assert "0021_sessions" in schema.upgrade(url)

    with opening.connect(url) as store:
        value = store.write(lambda: sessions.create(users.get(2), address="::1", agent="x" * 999, now=3)).result()
        found = store.read(lambda: sessions.find(value, now=4)).result()
        assert found is not None
        assert (found.user_id, found.email, found.last_used_at) == (2, "ben@label.test", 3)
        store.write(lambda: users.set_password(users.get(2), "hash", now=5)).result()
        assert store.read(lambda: sessions.find(value, now=6)).result() is None


def test_sessions_of_before_the_index_are_found_and_deleted_when_unused(
    old: Old, request: pytest.FixtureRequest
) -> None:
    blob = "BYTEA" if request.config.getoption("--store") == "postgres" else "BLOB"
    rows = ", ".join(f"(1, CAST('{used:032}' AS {blob}), 1, {used}, '::1', 'x')" for used in (7, 8, 9))
    columns = "user_id, digest, created_at, last_used_at, address, agent"
    url = old("0026_daily_keys", f"{EVENTS}; INSERT INTO session ({columns}) VALUES {rows}")
    assert "0028_session_index" in schema.upgrade(url)

    with opening.connect(url) as store:
        assert [each.last_used_at for each in store.read(lambda: sessions.list(1, now=10)).result()] == [9, 8, 7]
        later = 8 + sessions.IDLE
        store.write(lambda: sessions.create(users.get(2), address="", agent="", now=later)).result()
        assert [each.last_used_at for each in store.read(lambda: sessions.list(1, now=10)).result()] == [9]
        assert store.read(schema.problems).result() == []


TIMED_PLAYS = """
INSERT INTO artist (id, name, created_at) VALUES (1, 'Trio', 1), (2, 'Solo', 2);
INSERT INTO album (id, name, created_at) VALUES (5, 'Suite', 3);
INSERT INTO track (id, name, duration, album_id, currency, licensing_type, exclusive_status, fingerprint_status,
    created_at) VALUES (7, 'Air', 100000, 5, 'USD', 'both', 'sold', 'failed', 4),
    (8, 'Gigue', 0, NULL, 'EUR', 'both', 'available', 'failed', 5);
INSERT INTO track_artist (track_id, artist_id, position) VALUES (7, 1, 0), (7, 2, 1), (8, 2, 0);
INSERT INTO play (slot, track_id, listener_id, client_key, played_at, duration_ms, reporter)
    VALUES {plays};
INSERT INTO play_day (day, kind, subject, plays, listeners) VALUES {days};
INSERT INTO play_block (kind, subject, block, plays, listeners) VALUES {months};
INSERT INTO play_stretch (kind, subject, stretch, plays, listeners) VALUES {weeks};
INSERT INTO track_plays (track_id, plays) VALUES (7, 405), (8, 2);
UPDATE play_mark SET block = 2, stretch = 8
"""


def plays_before_histograms(*, postgres: bool) -> str:
    """Return plays with their rollups: track 7 on days 40 (400 times) and 41, track 8 on day 63."""
    nothing, one = ("''::bytea", r"'\x01000000'::bytea") if postgres else ("x''", "x'01000000'")
    timed = [(40 * 2880 + n, 7, [None, 20_000, 70_000, 200_000][n % 4]) for n in range(400)]
    timed += [(41 * 2880 + 121 * n, 7, 29_999) for n in range(5)] + [(63 * 2880, 8, 9), (63 * 2880 + 5, 8, None)]
    plays = [
        f"({slot}, {track}, 1, {nothing}, {slot * 30_000_000}, {'NULL' if heard is None else heard}, 0)"
        for slot, track, heard in timed
    ]
    subjects = {7: ((1, 7), (2, 5), (3, 1), (3, 2)), 8: ((1, 8), (3, 2))}
    counts: dict[tuple[int, int, int], int] = {}
    for slot, track, _ in timed:
        for kind, subject in subjects[track]:
            key = slot // 2880, kind, subject
            counts[key] = counts.get(key, 0) + 1
    months: dict[tuple[int, int], int] = {}
    for (_, kind, subject), count in counts.items():
        months[kind, subject] = months.get((kind, subject), 0) + count
    return TIMED_PLAYS.format(
        plays=", ".join(plays),
        days=", ".join(f"({day}, {kind}, {of}, {count}, {one})" for (day, kind, of), count in counts.items()),
        months=", ".join(f"({kind}, {of}, 1, {count}, {one})" for (kind, of), count in months.items()),
        weeks=f"(1, 7, 5, 405, {one})",
    )


def test_hours_and_completion_are_counted_from_the_plays_that_exist(old: Old, request: pytest.FixtureRequest) -> None:
    postgres = request.config.getoption("--store") == "postgres"
    url = old("0017_imports", plays_before_histograms(postgres=postgres))
    reported: list[tuple[float, float]] = []
    names = schema.upgrade(url, on_progress=lambda done, count: reported.append((done, count)))
    assert names[0] == "0018_histograms"
    assert reported == sorted(reported)
    assert {*range(len(names) + 1)} <= {done for done, _ in reported}
    assert {count for _, count in reported} == {len(names)}
    for name in ("0018_histograms", "0023_catalog_search"):
        assert any(0 < done - names.index(name) < 1 for done, _ in reported), name

    def packed(*of: int) -> histograms.Histogram:
        ((blob,),) = fetch("SELECT histogram FROM play_count WHERE key = ?", counts.key(counts.DAY, *of))
        return histograms.unpack([blob])

    with opening.connect(url) as store:
        assert verify.run(store, check=True, on_progress=lambda *_: None).differences == []
        album = store.read(lambda: packed(40, 2, 5)).result()
        assert (album.skipped[20], album.completed[70], album.completed[100]) == (100, 100, 100)
        solo = store.read(lambda: packed(63, 3, 2)).result()
        assert (solo.hours[3 * 24], solo.without_length, solo.timed) == (2, 1, 1)  # the 63rd day is a Thursday
        days = store.read(lambda: reader.counts_by_day(1, 7, range(32, 64))).result()
        assert days == {40: (400, 1), 41: (5, 1)}  # blocks are not counted yet
        assert store.read(schema.problems).result() == []
