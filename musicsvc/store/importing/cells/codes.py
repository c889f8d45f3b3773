"""Cells with codes: ids of other services, ISRCs and UPCs."""

from typing import Any

from musicsvc.store.catalog import external_ids, identifiers
from musicsvc.store.importing.cells.names import text
from musicsvc.store.importing.cells.numbers import LONGEST_NUMBER
from musicsvc.wording import LONGEST_NAME


def identifier(value: Any, noun: external_ids.Noun) -> str | None:
    """Return the id of a track, album or playlist in another service."""
    return None if (found := text(value, LONGEST_NAME)) is None else external_ids.bare(found, noun)


def isrc(value: Any) -> str | None:
    found = text(value, LONGEST_NUMBER)
    return None if found is None else identifiers.isrc(found)


def upc(value: Any) -> str | None:
    found = text(value, LONGEST_NUMBER)
    if found is None:
        return None
    # A spreadsheet that takes it for a number drops the zeros in front.
    return identifiers.upc(found.zfill(identifiers.UPC_DIGITS) if found.isascii() and found.isdigit() else found)
