"""The days between which a certificate holds, read from its file."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from musicsvc.clock import EPOCH
from musicsvc.errors import Failure

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
VERSION = 0xA0  # a tag of DER
LONG = 0x80  # the length of the length follows
FORMATS = {13: "%y%m%d%H%M%SZ", 15: "%Y%m%d%H%M%SZ"}


@dataclass(frozen=True, slots=True)
class Validity:
    """From which instant to which."""

    begins: int
    ends: int


def validities(file: Path) -> list[Validity]:
    """Of each certificate of a chain, the service's own first. Raises Failure where the file holds none."""
    try:
        blocks = BLOCK.findall(file.read_text("ascii"))
        found = [_validity(ssl.PEM_cert_to_DER_cert(block)) for block in blocks]
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, LookupError):
        raise Failure(f"{file} is no certificate in PEM.") from None
    if not found:
        raise Failure(f"{file} is no certificate in PEM.")
    return found


def _validity(der: bytes) -> Validity:
    """The two instants of a certificate in DER (RFC 5280, section 4.1): the fifth of the signed fields."""
    _, certificate, _ = _element(der, 0)
    _, at, _ = _element(der, certificate)
    tag, _, after = _element(der, at)
    if tag == VERSION:
        at = after
    for _ in ("serial number", "signature", "issuer"):
        _, _, at = _element(der, at)
    _, first, _ = _element(der, at)
    _, begin, second = _element(der, first)
    _, other, end = _element(der, second)
    return Validity(_instant(der[begin:second]), _instant(der[other:end]))


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the element that begins there, where its content begins, and where it ends."""
    length, begin = der[at + 1], at + 2
    if length & LONG:
        size = length & ~LONG
        length, begin = int.from_bytes(der[begin : begin + size], "big"), begin + size
    return der[at], begin, begin + length


def _instant(text: bytes) -> int:
    moment = datetime.strptime(text.decode("ascii"), FORMATS[len(text)]).replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)
