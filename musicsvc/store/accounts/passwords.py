"""Password rules, and argon2id hashes with the parameters that OWASP recommends."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from musicsvc.store.accounts import email_addresses

SHORTEST = 8
LONGEST = 128
COMMONEST = 3_000
HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)  # memory in KiB


def hash_password(password: str) -> str:
    """Return the argon2id hash of the password, including salt and parameters. Takes about 20 ms and 19 MiB."""
    return HASHER.hash(password)


def verify(hashed: str, password: str) -> bool:
    try:
        return HASHER.verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False


def check(password: str, *, email: str, hosted: bool) -> str | None:
    """Return an error message if the password is refused, else None. If `hosted`, common passwords are refused too."""
    if not SHORTEST <= len(password) <= LONGEST:
        return f"The password must have {SHORTEST} to {LONGEST} characters."
    if email_addresses.normalize(password) == email_addresses.normalize(email):
        return "The password must not be the email."
    if hosted and password.casefold() in _commonest():
        return "The password is among the commonest; choose another."
    return None


def _commonest() -> list[str]:
    from zxcvbn.frequency_lists import FREQUENCY_LISTS  # noqa: PLC0415 - a long list, needed only by hosted services

    return FREQUENCY_LISTS["passwords"][:COMMONEST]
