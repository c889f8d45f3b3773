"""Validate ISRCs of recordings (ISO 3901) and UPCs of releases (GTIN-12 and GTIN-13), and find tracks by ISRC."""

import re
from collections.abc import Collection
from typing import Any

from peewee import SQL, Select, fn

from musicsvc.errors import Invalid
from musicsvc.store.accounts.callers import Caller
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.engine import sql
from musicsvc.store.engine.sql import compiled, current
from musicsvc.store.models import Album, AlbumArtist, Artist, Merged, Track, TrackArtist

LOCK = 0x49535243  # "ISRC"
ISRC = re.compile(r"[A-Z]{2}-?[A-Z0-9]{3}-?[0-9]{2}-?[0-9]{5}", re.ASCII | re.IGNORECASE)
UPC_DIGITS = 12
UPC = re.compile(r"[0-9]{12,13}")
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
    return dict(_owned(codes, manager or 0, besides, managed=manager is not None))


def albums_by_upc(codes: Collection[str], manager: int | None) -> dict[str, int]:
    """Return album ids by UPC, without zeros in front, for albums whose first artist has this manager (None: none).

    An album also has the UPCs of what was merged into it. Of several albums with one, the oldest counts.
    """
    spelled = [each for code in codes for each in spellings_of_upc(code.zfill(UPC_DIGITS))]
    return {code.lstrip("0"): album for code, album in _albums(spelled, manager or 0)} if spelled else {}


@compiled
def _albums(codes: Collection[str], manager: int) -> Any:
    own = Album.select(Album.upc.alias("code"), Album.id.alias("album"), SQL("0").alias("former"))
    former = Merged.select(Merged.code, Merged.into, SQL("1")).where(Merged.kind == SQL("2"), Merged.code.in_(codes))
    coded = own.where(Album.upc.in_(codes)).union_all(former).alias("coded")
    query = coded.select_from(coded.c.code, coded.c.album).join(AlbumArtist, on=AlbumArtist.album == coded.c.album)
    query = query.join(Artist, on=Artist.id == AlbumArtist.artist)
    led = (AlbumArtist.position == 0) & (fn.coalesce(Artist.manager, 0) == manager)
    return query.where(led).order_by(coded.c.former.desc(), coded.c.album.desc())


@compiled
def _owned(codes: Collection[str], manager: int, besides: int, *, managed: bool) -> Any:
    """Return a query for the ISRCs and ids of tracks of artists with the manager, or of those without one."""
    own = Track.select(Track.isrc.alias("code"), Track.id.alias("track"), SQL("0").alias("former"))
    former = Merged.select(Merged.code, Merged.into, SQL("1")).where(Merged.kind == SQL("1"), Merged.code.in_(codes))
    coded = own.where(Track.isrc.in_(codes)).union_all(former).alias("coded")
    of_manager = managed_by(manager if managed else None)
    # With EXISTS, PostgreSQL might read all artists.
    credit = TrackArtist.select(fn.COUNT(SQL("*"))).join(Artist).where(TrackArtist.track == coded.c.track, of_manager)
    query = Select([coded], [coded.c.code, coded.c.track]).bind(current())
    return query.where(SQL("0") < credit, coded.c.track != besides).order_by(
        coded.c.former.desc(), coded.c.track.desc()
    )


def lock() -> None:
    """Prevent other transactions from giving tracks an ISRC until this transaction ends."""
    sql.lock(LOCK)


def require_free(code: str, *, actor: Caller) -> None:
    """Raise Invalid if a track that the actor manages has this ISRC."""
    lock()
    if tracks_by_isrc([code], actor.user_id):
        raise Invalid({"isrc": IN_USE})
