"""E-mail addresses: syntax checks, and the normalized form by which accounts and access requests are found."""

import unicodedata

import regex

from musicsvc.wording import LONGEST_NAME

LOCAL_LENGTH = 64
INVALID = "The e-mail must be a valid e-mail address."
_ATOM = r"(?:[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x7f\p{C}\p{Z}])+"
_LOCAL = regex.compile(rf"(?!\p{{M}}){_ATOM}(?:\.{_ATOM})*")  # RFC 5322 dot-atom, RFC 6532 for the rest of Unicode
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_DOMAIN = regex.compile(rf"localhost|(?:{_LABEL}\.)+(?!\d+$){_LABEL}")  # a number at the end: an IP address


def normalize(email: str) -> str:
    """Return the form that all spellings of an e-mail address share.

    The part before the @ is case-folded and in NFKC. The domain is in ASCII (IDNA with UTS 46, non-transitional). A
    text that is too long for an address stays as it is: the cost of normalizing grows with the square of the length.
    """
    email = email.strip()
    if len(email) > LONGEST_NAME:
        return email
    local, at, domain = email.rpartition("@")
    return _fold(local) + at + (_ascii_domain(domain) or _fold(domain))


def problem(email: str) -> str | None:
    """Return an error message if the e-mail's syntax is invalid, else None. Reserved domains like `.test` are valid."""
    email = email.strip()
    if len(email) > LONGEST_NAME:
        return f"The e-mail must not be longer than {LONGEST_NAME} characters."
    local, _, domain = email.rpartition("@")
    if max(len(local), len(_fold(local))) > LOCAL_LENGTH:
        return f"The part of the e-mail before the @ must not be longer than {LOCAL_LENGTH} characters."
    valid = _LOCAL.fullmatch(local) and _LOCAL.fullmatch(_fold(local)) and _DOMAIN.fullmatch(_ascii_domain(domain))
    return None if valid else INVALID


def _fold(text: str) -> str:
    """Return the text case-folded and in NFKC. Folding the result again does not change it."""
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return text


def _ascii_domain(domain: str) -> str:
    """Return the domain in its ASCII form, or an empty string if the domain is invalid."""
    if domain.isascii() and "xn--" not in (lowered := domain.lower()):
        return lowered
    import idna  # noqa: PLC0415 - slow to load; most domains do without it

    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return ""
