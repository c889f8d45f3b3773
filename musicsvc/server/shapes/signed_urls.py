"""Sign data that is part of a URL. Any process with the key can verify the data without a database lookup."""

import hashlib
import hmac
import json
import zlib
from typing import Any

from itsdangerous import HMACAlgorithm, Signer
from itsdangerous.encoding import base64_decode, base64_encode

SIGNATURE_BYTES = 16


class _TruncatedHmac(HMACAlgorithm):
    """HMAC-SHA-256 cut to 128 bits, which keeps URLs short."""

    def __init__(self) -> None:
        super().__init__(hashlib.sha256)

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return super().get_signature(key, value)[:SIGNATURE_BYTES]


def sign(key: bytes, value: Any) -> str:
    """Encode a JSON value and its signature as text for a path segment."""
    payload = zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), 9)
    return _signer(key).sign(base64_encode(payload)).decode()


def verify(key: bytes, text: str) -> Any:
    """Return the JSON value that `text` encodes. Raises ValueError for any text that `sign` did not return."""
    payload, _, _ = text.rpartition(".")
    # Comparing texts, not the bytes that they encode: base64 can spell the same bytes in several ways.
    if not hmac.compare_digest(_signer(key).sign(payload), text.encode()):
        raise ValueError("the signature is invalid")
    return json.loads(zlib.decompress(base64_decode(payload)))


def _signer(key: bytes) -> Signer:
    return Signer(key, key_derivation="none", algorithm=_TruncatedHmac())
