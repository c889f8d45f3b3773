"""Replaces secrets in texts and JSON values by asterisks: tokens, passwords, cookies, signed and one-time links."""

import re
from string import ascii_letters, digits
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
WORD = "(?:password|passwd|secret|token|signature|cookie|authorization|api[_-]?key)"
END = r"(?:\]|%5d)?"
NAME = rf"[\w.%\[\]-]*{WORD}{END}"
SECRETS = re.compile(
    r"(msvc(?:_|%(?:25)*5f))[0-9a-z]+"
    r"|(bearer(?:\s|\+|%20)++)[^\s&\"']+"
    r"|((?:/|%2f)(?:password|reports|previews)(?:/|%2f))[\w.-]+"
    rf'|("{NAME}"\s*:\s*)(?:"(?:[^"\\]|\\.)*"?|[\[{{].*|[^\s"\[{{,}}\]][^",}}\]]*)'  # in JSON that is not valid
    rf"|((?:^|[?&;]\s*){NAME}=)[^&\s\"']+"  # a parameter of a query, a form or a header
    r"|(cookie:[ \t]*+)[^\r\n]+",
    re.IGNORECASE | re.DOTALL,
)
# Without one of them, a text has no secret.
SIGNS = ("msvc", "bearer", "passw", "/reports/", "/previews/", "%2freports", "%2fpreviews", "secret", "token",
         "signature", "cookie", "authorization", "apikey", "api_key", "api-key")  # fmt: skip
UNRESERVED = frozenset(f"{ascii_letters}{digits}-._~")  # in URLs, where their escapes mean the same
ENCODED = re.compile("%(?:25)*([0-9a-f]{2})", re.IGNORECASE)
MOST_LAYERS = 5  # of percent-encoding, as in a URL within a URL
LEFT = re.compile(rf"({WORD})(?!{END}[\"']?\s*[:=]\s*\*\*\*).*", re.IGNORECASE | re.DOTALL)
SECRET_NAME = re.compile(NAME, re.IGNORECASE)


def redact(text: str) -> str:
    """Return the text without secrets, those in percent-encoding included. Without any it stays as it is."""
    redacted = layer = _redact(text)
    for _ in range(MOST_LAYERS):
        if (decoded := unquote(layer)) == layer:
            break
        if (layer := _redact(decoded)) != decoded:
            redacted = layer
    return redacted


def _redact(text: str) -> str:
    """Return the text without secrets. Letters may be percent-encoded, but not what separates names and values."""
    plain = ENCODED.sub(_letter, text) if "%" in text else text
    lowered = plain.lower()
    if not any(sign in lowered for sign in SIGNS):
        return text
    redacted = SECRETS.sub(lambda found: "".join(part or "" for part in found.groups()) + HIDDEN, plain)
    return text if redacted == plain else redacted


def _letter(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter in UNRESERVED else found[0]


def redact_unknown(text: str) -> str:
    """Return a text in an unknown notation without secrets: nothing is left after the name of one that it still has."""
    without_nulls = text.replace("\0", "")  # of UTF-16
    redacted = LEFT.sub(rf"\1{HIDDEN}", redact(without_nulls))
    return text if redacted == without_nulls else redacted


def redact_json(value: Any) -> Any:
    """Return the JSON value without secrets: those in its texts, and all values of members such as `password`."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_json(each) for each in value]
    if isinstance(value, dict):
        return {redact(name): _member(name, each) for name, each in value.items()}
    return value


def _member(name: str, value: Any) -> Any:
    hidden = value is not None and SECRET_NAME.fullmatch(name) is not None
    return HIDDEN if hidden else redact_json(value)
