"""Password rules, and argon2id hashes with the parameters that OWASP recommends."""

import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from musicsvc.store.accounts import email_addresses

SHORTEST = 8
LONGEST = 128
COMMONEST = 3_000
HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)  # memory in KiB
# The hash of a random password that was discarded, with the same parameters.
NOBODYS = "$argon2id$v=19$m=19456,t=2,p=1$Cz3SS0J8R8ZUDVafPvk7cQ$x0KwF+b5p+R19UCJm2qxOVk+x9eXoUQgkcdOKzawYBo"


def hash_password(password: str) -> str:
    """Return the argon2id hash of the password in NFKC, including salt and parameters. Takes about 20 ms and 19 MiB."""
    return HASHER.hash(normalize(password))


def normalize(password: str) -> str:
    """Return the password in NFKC, in which all spellings of a text are equal: `é` as one character or as two.

    A password that is too long stays as it is, because the cost of normalizing grows with the square of the length.
    """
    return password if len(password) > LONGEST else unicodedata.normalize("NFKC", password)


def matches(hashed: str | None, password: str) -> bool:
    """Return whether the password has this hash. Takes equally long if `hashed` is None, and then returns False."""
    return verify(hashed or NOBODYS, password) and hashed is not None


def verify(hashed: str, password: str) -> bool:
    """Return whether the password has this hash, in NFKC or, as earlier versions hashed it, as it was typed.

    Both are computed where they differ, whatever the result of the first, so that the time depends on the typed text
    only.
    """
    found = {_verify(hashed, form) for form in {normalize(password), password}}
    return True in found


def _verify(hashed: str, password: str) -> bool:
    try:
        return HASHER.verify(hashed, password)
    except (VerificationError, InvalidHashError):
        return False


def check(password: str, *, email: str, hosted: bool) -> str | None:
    """Return an error message if the password is refused, else None.

    The length counts the code points as typed; in NFKC, which may have fewer, there must be enough as well.
    If the service has a public address (`hosted`), common passwords are refused too.
    """
    normal = normalize(password)
    if not SHORTEST <= len(password) <= LONGEST or len(normal) < SHORTEST:
        return f"The password must have {SHORTEST} to {LONGEST} characters."
    if email_addresses.normalize(password) == email_addresses.normalize(email):
        return "The password must not be the e-mail."
    if hosted and normal.casefold() in _commonest():
        return "The password is one of the most common ones. Choose another."
    return None


def _commonest() -> list[str]:
    from zxcvbn.frequency_lists import FREQUENCY_LISTS  # noqa: PLC0415 - a long list, needed only by hosted services

    return FREQUENCY_LISTS["passwords"][:COMMONEST]
