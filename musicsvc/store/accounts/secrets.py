"""The installation secret, a random value shared by all nodes, and the keys derived from it."""

from __future__ import annotations

import hmac

from musicsvc.store.models import Secret


def key(purpose: str) -> bytes:
    """Return a 32-byte key: the HMAC-SHA-256 of the purpose, keyed with the secret. It is the same on every node."""
    secret = Secret.get_by_id("installation").value
    return hmac.digest(bytes(secret), purpose.encode(), "sha256")
