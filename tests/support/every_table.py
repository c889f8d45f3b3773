"""Rows in every table that the fixtures leave empty, with values that are hard to copy."""

from itertools import cycle
from typing import Any

from peewee import Model

from musicsvc.clock import DAY
from musicsvc.store import models
from musicsvc.store.activity import log as activity_log
from musicsvc.store.activity import sums
from musicsvc.store.engine import bulk, list_blocks
from musicsvc.store.models import Activity, Album, Artist, Track, TrackArtist, User
from musicsvc.store.seeding import fixtures
from tests.conftest import NOW

# Texts that PostgreSQL's COPY, JSON, collations or terminals treat in their own way.
ODD = ("\\N", "\\.", "a\tb\nc\r", "Ünï ‘çödé’ 🎧", '"quoted", {"a": [1]}', "", " ", "%s ? {x} $1", "\x1b[31m\x7f")
LONG_LIST = 4_200  # tracks of an artist; a list of more than 4,096 rows is counted in blocks
FIRST = 500_000  # of the ids
HASH = bytes(range(32))
HEARD = "artist title release isrc external_id platform"  # texts of a listen


def fill(*, now: int = NOW) -> None:
    """Load the fixtures, and add rows to all other tables. Call this in a write transaction."""
    fixtures.load(now=now)
    ids = [user.id for user in User.select().order_by(User.id)]
    for model, fields, rows in _rows(ids, now):
        bulk.insert(model, fields.split(), rows)
    _add_long_list(now)


def fill_log(url: str, *, now: int = NOW) -> None:
    """Create the activity log of the database at `url`, with some calls."""
    columns = "at request_id account_id address method route resource status milliseconds size limits_apply private"
    rows = [
        (now + n, f"{n}{text}", n % 3 or None, "::1", "GET", text or None, text, 200 + n, n / 7, n, n % 2 > 0, n > 4)
        for n, text in enumerate(ODD)
    ]
    with activity_log.build(url) as log:
        log.prepare()
        log.write(lambda: bulk.insert(Activity, columns.split(), rows)).result()
        log.write(sums.add_new).result()


def _rows(users: list[int], now: int) -> list[tuple[type[Model], str, list[tuple[Any, ...]]]]:
    """Return for each table: its model, the names of fields, and rows; no two tables have equally many new rows."""
    return [
        (models.AccessRequest, "email email_key use_case volume organization state reason created_at", [
            (f"a{n}@x.test", f"a{n}@x.test", text, "1", text, ("denied", "approved")[n % 2], text or None, now + n)
            for n, text in enumerate(ODD)
        ]),
        (models.ReportLink, "id user kind first_day end_day created_at expires_at period programs", [
            (n, users[0], 1 + n % 3, n, n + 7, now, now + DAY, "7-days" if n == 7 else None, n != 3) for n in (3, 7, 11)
        ]),
        (models.ReportLinkSubject, "report_link position subject", [
            (n, at, at) for n in (3, 7, 11) for at in range(n)
        ]),
        (models.ArtistOffer, "id user recipient email note created_at expires_at", [
            (n, users[n % 3], users[3] if n % 2 else None, f"o{n}@x.test", ODD[n % 9], now, now + n) for n in range(22)
        ]),
        (models.ArtistOfferArtist, "artist_offer artist", [(n % 5, n) for n in range(29)]),
        (models.PasswordLink, "digest user created_at expires_at", [
            (bytes([255 - n]) * n, user, now, now + n) for n, user in enumerate(users[:4])
        ]),
        (models.Session, "user digest created_at last_used_at address agent", [
            (users[n % 3], bytes([n]) + HASH[1:], now, now + n, "::1", text) for n, text in enumerate(ODD[:8])
        ]),
        (models.Secret, "name value", [(name, HASH * 2) for name in ("Z", "a", "é", "🎧", "ﬀ")]),
        (models.Merged, "id kind former into name code external_id imported_for album", [
            (n, 1 + n % 3, n, n + 1, text, None, text or None, -n, None) for n, text in enumerate(ODD[:6])
        ]),
        (models.MergedCredit, "merged artist", [(n % 6, n) for n in range(13)]),
        (models.ImportRun, "kind file user state rows first_slot started_at", [
            ("plays", text, None, "done", n, -n, now) for n, text in enumerate(ODD[:7])
        ]),
        (models.ImportTask, "user step state kind file place stored_as options percent created_at", [
            (user, "check", "done", "catalog", ODD[3], "here", "f", "{}", 99, now) for user in users[:2]
        ]),
        (models.ImportItem, "run kind item changes", [
            (1 + n % 3, kind, n, None if n % 2 else ODD[4]) for n in range(5) for kind in ("a", "B", "Á", "track")
        ]),
        (models.DivideRule, "user heading signs set_at", [(n, text, text, now) for n in range(3) for text in ODD]),
        (models.DeletedTrack, "kind subject track duration", [(1 + n % 3, n, 2**40 + n, n) for n in range(17)]),
        (models.PendingListen, f"user slot played_at received_at names artist_key {HEARD} counted_for", [
            (users[n % 3], n, now, now + n, 2**62 + n, n, f"No {text}", text, None, *(f"no {text}",) * 3, n or None)
            for n, text in enumerate(ODD[:8])
        ]),
        (models.RefusedListen, "user reason listens last_at", [
            (users[n % 3], f"r{n}", 2**40 + n, now) for n in range(11)
        ]),
        (models.KeptAnswer, "user key path body_hash answer kept_at", [
            (users[n % 3], f"key {n}{ODD[n % 9]}", f"/api/v1/{ODD[n % 9]}", HASH, bytes(range(256)) * n, now - n)
            for n in range(23)
        ]),
        (models.OwnPlayDay, "day listener plays", [(n, 2**31 + n, 600 - n) for n in range(19)]),
        (models.DroppedPlay, "client_key slot listener names_hash", [
            (bytes([n]) * (n + 1), n, 1, -(2**63) if n else None) for n in range(14)
        ]),
        (models.Listener, "id key", [(n + 1, f"opaque:{n}{ODD[n % 9]}") for n in range(26)]),
        (models.TrackPlays, "track plays", [(FIRST + n, n * n) for n in range(31)]),
        (models.PlayCount, "key plays own listeners histogram", [
            (2**61 + n, n, 0, bytes(n % 256 for n in range(n * 9000)), b"") for n in range(41)
        ]),
        (models.Play, "slot track listener client_key played_at duration_ms reporter reported_at", [
            (57_000_000 + n // 2, 1 + n % 3, n + 1, key + bytes(n), now, None, n, now)
            for n, key in zip(range(9), cycle((b"", b"\x00", b"\\x41\n", b"\xff" * 16)), strict=False)
        ]),
    ]  # fmt: skip


def _add_long_list(now: int) -> None:
    """Add an artist whose tracks are a long list, which is counted in blocks, and are ranked by plays."""
    ids = range(FIRST, FIRST + LONG_LIST)
    Artist.insert(id=FIRST, name=ODD[3], created_at=now).execute()
    Album.insert(id=FIRST, name="Long", created_at=now).execute()
    fields = "id name duration album price fingerprint_status explicit created_at"
    rows = [(n, f"Track {n % 97}", n % 1000, FIRST, n / 7, "completed", (None, True, False)[n % 3], now) for n in ids]
    bulk.insert(Track, fields.split(), rows)
    bulk.insert(TrackArtist, ["track", "artist", "position"], [(n, FIRST, 0) for n in ids])
    list_blocks.rebuild()
