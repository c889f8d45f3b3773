"""Cells with codes: ids of other services, ISRCs and UPCs."""

import re
from typing import Any

from musicsvc.store.catalog import external_ids, identifiers
from musicsvc.store.importing.cells.names import SEPARATOR, text
from musicsvc.store.importing.cells.notations import Notation, PartlyError
from musicsvc.store.importing.cells.numbers import LONGEST_NUMBER
from musicsvc.wording import LONGEST_NAME

PARTS = re.compile(r"[;,/|\n]")
SIGNS = re.compile(r"[\s\u2010-\u2015-]")  # blanks, and hyphens and dashes of all lengths
LABEL = re.compile(r"ISRC:?", re.IGNORECASE)
FRACTION = re.compile(r"\.0+")
ROUNDED = re.compile(r"[0-9][.,][0-9]+[eE]\+?[0-9]{1,2}")
GTIN_14 = 14  # digits
LONGEST_ISRCS = 10_000
SEVERAL = "has several ISRCs, and the first is taken"


def identifier(value: Any, noun: external_ids.Noun) -> str | None:
    """Return the id of a track, album or playlist in another service."""
    if isinstance(value, str) and len(value) < external_ids.MBID_LENGTH and value.isalnum():
        return value
    return None if (found := text(value, LONGEST_NAME)) is None else external_ids.bare(found, noun)


def isrc(value: Any) -> str | None:
    """Return the ISRC. Raises PartlyError for several, with the first one."""
    found = text(SEPARATOR.join(map(str, value)) if isinstance(value, list) else value, LONGEST_ISRCS)
    if found is None:
        return None
    parts = [each for part in PARTS.split(found) if (each := LABEL.sub("", part.lstrip("' "), 1).strip())]
    if len(parts) == 1 and identifiers.as_isrc(SIGNS.sub("", parts[0])) is None:
        parts = parts[0].split()
        parts = parts if all(map(identifiers.as_isrc, parts)) else [found]
    codes = [identifiers.isrc(SIGNS.sub("", part)) for part in parts[:1]]
    if {*parts[1:]} - {*parts[:1]}:
        raise PartlyError(SEVERAL, codes[0])
    return codes[0] if codes else None


def upc(value: Any) -> str | None:
    """Return the UPC or EAN with the zeros in front that a spreadsheet drops, and without those of a GTIN-14.

    Raises ValueError for other texts.
    """
    found = text(value, LONGEST_NUMBER)
    if found is None:
        return None
    if ROUNDED.fullmatch(found):
        raise ValueError("was rounded by the spreadsheet; make the column one of texts, and enter the codes again")
    digits = FRACTION.sub("", SIGNS.sub("", found.lstrip("'")))
    if not (digits.isascii() and digits.isdigit()):
        return identifiers.upc(found)
    if len(digits) == GTIN_14 and digits.startswith("0"):
        digits = digits[2:] if digits.startswith("00") else digits[1:]
    return identifiers.upc(digits.zfill(identifiers.UPC_DIGITS))


UPCS = (
    Notation("12 digits (UPC) or 13 (EAN), with or without blanks and hyphens", upc,
             "036000291452 = 036000291452 | 0 36000 29145 2 = 036000291452 | 4-006381-333931 = 4006381333931"),
    Notation("without the zeros in front, or with a fraction or an apostrophe", upc,
             "36000291452 = 036000291452 | 36000291452.0 = 036000291452 | '036000291452 = 036000291452",
             source="spreadsheets"),
    Notation("14 digits (GTIN-14) with zeros in front", upc, "00036000291452 = 036000291452", source="distributors"),
)  # fmt: skip
ISRCS = (
    Notation("12 letters and digits, with or without blanks and hyphens", isrc,
             "GBAYE6800011 = GBAYE6800011 | gb-aye-68-00011 = GBAYE6800011 | GB AYE 68 00011 = GBAYE6800011 |"
             " ISRC GBAYE6800011 = GBAYE6800011"),
    Notation("several: the first is taken, and the cell is counted as left out", isrc,
             "GBAYE6800011;GBAYE6800012 = GBAYE6800011 | GBAYE6800011, GBAYE6800012 = GBAYE6800011", source="Picard"),
)  # fmt: skip
