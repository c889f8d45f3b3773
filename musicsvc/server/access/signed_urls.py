"""Addresses that carry their own input: signed, so that nobody can make one up, and readable by any node."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import zlib
from typing import Any

SIGNATURE_BYTES = 16
LONGEST = 4096
LARGEST = 16 * 1024


def sign(key: bytes, value: Any) -> str:
    """The value as text for a path segment, and its signature (HMAC-SHA-256, cut to 128 bits)."""
    payload = _encode(zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), 9))
    return f"{payload}.{_signature(key, payload)}"


def verify(key: bytes, text: str) -> Any:
    """The value again. Raises ValueError for what this key has not signed."""
    payload, _, signature = text.partition(".")
    if len(text) > LONGEST or not text.isascii() or not hmac.compare_digest(signature, _signature(key, payload)):
        raise ValueError("not signed here")
    try:
        packed = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        return json.loads(zlib.decompressobj().decompress(packed, LARGEST))
    except (binascii.Error, zlib.error) as error:
        raise ValueError("not readable") from error


def _signature(key: bytes, payload: str) -> str:
    return _encode(hmac.digest(key, payload.encode(), "sha256")[:SIGNATURE_BYTES])


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
