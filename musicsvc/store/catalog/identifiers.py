"""Validate ISRCs of recordings (ISO 3901) and UPCs of releases (GTIN-12 and GTIN-13), and find tracks by ISRC."""

import re
from collections.abc import Collection

from musicsvc.errors import Invalid
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import fetch

LOCK = 0x49535243  # "ISRC"
MOST_TRACKS, MOST_DISCS = 9_999, 999
ISRC = re.compile(r"[A-Z]{2}-?[A-Z0-9]{3}-?[0-9]{2}-?[0-9]{5}", re.ASCII | re.IGNORECASE)
UPC_DIGITS = 12
UPC = re.compile(r"[0-9]{12,13}")
# The tracks of artists with one manager; NULL is the manager of the artists without one. With EXISTS, PostgreSQL might
# read all artists.
OWNERS = """
    SELECT coded.isrc, coded.id FROM (
        SELECT isrc, id, 0 AS former FROM track WHERE isrc {among}
        UNION ALL SELECT code, into_id, 1 FROM merged WHERE kind = 1 AND code {among}
    ) AS coded WHERE 0 < (
        SELECT count(*) FROM track_artist l JOIN artist a ON a.id = l.artist_id
        WHERE l.track_id = coded.id AND a.manager_id IS NOT DISTINCT FROM ?
    ) AND coded.id <> ? ORDER BY coded.former DESC, coded.id DESC
"""
IN_USE = "Another of your tracks has this ISRC."


def isrc(text: str) -> str:
    """Return the ISRC in upper case without hyphens. Raises ValueError if `text` is not an ISRC."""
    if (code := as_isrc(text)) is None:
        raise ValueError("must be an ISRC: two letters, three letters or digits, seven digits, such as GBAYE6800011")
    return code


def upc(text: str) -> str:
    """Return `text` if it is a UPC or EAN. Raises ValueError for a wrong number of digits or check digit."""
    if not UPC.fullmatch(text):
        raise ValueError("must be a UPC or EAN of 12 or 13 digits (spreadsheets drop zeros at the beginning)")
    weighted = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(reversed(text)))
    if weighted % 10:
        raise ValueError(f"must be a UPC or EAN; the check digit of {text} is wrong")
    return text


def as_isrc(text: str) -> str | None:
    """Return the ISRC in upper case without hyphens, or None if `text` is not an ISRC."""
    return text.replace("-", "").upper() if ISRC.fullmatch(text) else None


def spellings_of_upc(text: str) -> list[str]:
    """Return the forms in which a UPC may be stored: 12 digits, or 13 (EAN) with a zero in front. [] if invalid."""
    code = text.replace("-", "").replace(" ", "")
    if not UPC.fullmatch(code):
        return []
    return [code, f"0{code}"] if len(code) == UPC_DIGITS else [code, *([code[1:]] if code.startswith("0") else [])]


def tracks_by_isrc(codes: Collection[str], manager: int | None, *, besides: int = 0) -> dict[str, int]:
    """Return track ids by ISRC, for tracks of artists with this manager, or without a manager if `manager` is None.

    A track also has the ISRCs of what was merged into it. The track `besides` is left out.
    """
    if not codes:
        return {}
    among, values = sql.in_list(codes)
    return dict(fetch(OWNERS.format(among=among), values, values, manager, besides))


def lock() -> None:
    """Prevent other transactions from giving tracks an ISRC until this transaction ends."""
    sql.lock(LOCK)


def require_free(code: str, *, actor: Caller) -> None:
    """Raise Invalid if a track that the actor manages has this ISRC."""
    lock()
    if tracks_by_isrc([code], actor.user_id):
        raise Invalid({"isrc": IN_USE})
