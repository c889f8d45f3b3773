"""The installation's secret: a random value that all nodes share, and keys derived from it by purpose."""

from __future__ import annotations

import hmac

from musicsvc.store.models import Secret


def key(purpose: str) -> bytes:
    """A key of 32 bytes for this purpose, the same on every node (HMAC-SHA-256 of the secret)."""
    secret = Secret.get_by_id("installation").value
    return hmac.digest(bytes(secret), purpose.encode(), "sha256")
