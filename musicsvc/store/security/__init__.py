"""Secrets of the installation, sessions of browsers, and the record of security events."""

import hmac

from musicsvc.store.models import Secret


def key(purpose: str) -> bytes:
    """Return the HMAC-SHA-256 of `purpose`, keyed with the installation secret: 32 bytes, the same on every node."""
    secret = Secret.get_by_id("installation").value
    return hmac.digest(bytes(secret), purpose.encode(), "sha256")
