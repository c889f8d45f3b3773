"""Browsers that request pages: the session in their cookie, and the protection of forms against other sites."""

import hashlib
import hmac
import json
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from multidict import CIMultiDictProxy

from musicsvc.errors import Forbidden
from musicsvc.store.security import sessions
from musicsvc.store.security.sessions import SessionIdentity

COOKIE = "musicsvc"
NOTICE = "musicsvc_notice"
MARK_LENGTH = 8  # characters of the hash of the base path in the names of cookies
HOST_ONLY = "__Host-"  # browsers accept such a cookie only over HTTPS, from the host itself
VALUE = re.compile(r"[A-Za-z0-9_-]{43}")
NONCE_BYTES = 16
NOTICE_SECONDS = 60
LONGEST_NOTICE = 3_000  # of a cookie; two names of 255 characters fit
CUT = 500  # characters of a longer notice, which proxies and browsers would refuse
FOREIGN = "The form was sent from another site. Open the page on this site and send the form again."
EXPIRED = "The form has expired. Send it once more."
NO_COOKIES = "Your browser sent no cookie. Allow this site to set cookies, then send the form once more."


class ExpiredForm(Forbidden):
    """The form was shown to another browser, or before its user signed in or out."""


@dataclass(slots=True)
class Browser:
    """A browser during one request.

    `origin`: the origin of this service. `mark`: ends the names of cookies. `value`: the browser's cookie, which is a
    session id if the user is signed in. `notice`: a message that the previous page left for this one. `cookies`: values
    of Set-Cookie for the response.
    """

    secure: bool
    origin: str
    address: str
    agent: str
    mark: str
    value: str | None = None
    notice: str | None = None
    caller: SessionIdentity | None = None
    cookies: list[str] = field(default_factory=list)

    def form_token(self) -> str:
        """Return a new token for the forms of this browser. Gives the browser a cookie if it has none."""
        if self.value is None:
            self.keep(secrets.token_urlsafe(sessions.ID_BYTES))
        nonce = secrets.token_bytes(NONCE_BYTES)  # each token differs, so that compression reveals nothing about it
        return (nonce + self._signature(nonce)).hex()

    def require_own_form(self, token: object) -> None:
        """Raise Forbidden unless the form with this token was shown to this browser."""
        with suppress(ValueError):
            given = bytes.fromhex(token if isinstance(token, str) else "")
            if self.value and hmac.compare_digest(given[NONCE_BYTES:], self._signature(given[:NONCE_BYTES])):
                return
        raise ExpiredForm(EXPIRED if self.value else NO_COOKIES)

    def require_own_site(self, headers: CIMultiDictProxy[str]) -> None:
        """Raise Forbidden unless a page of this service sent the request."""
        own = headers.getall("Origin", ()) == [self.origin] or headers.getall("Sec-Fetch-Site", ()) == ["same-origin"]
        if not own:
            raise Forbidden(FOREIGN)

    def keep(self, value: str | None) -> None:
        """Set the browser's cookie to `value`, or remove it if `value` is None."""
        self.value = value
        self.cookies.append(self._cookie(COOKIE, value or "", "" if value else "; Max-Age=0"))

    def leave_notice(self, text: str) -> None:
        """Store a message in the browser, to be shown on the next page. Cuts it if it is too long."""
        value = _spell(text)
        if len(value) > LONGEST_NOTICE:
            value = _spell(f"{text[:CUT]}…")
        self.cookies.append(self._cookie(NOTICE, value, f"; Max-Age={NOTICE_SECONDS}"))

    def take_notice(self) -> str | None:
        """Return the message that the previous page left, and remove it from the browser."""
        if self.notice is not None:
            self.cookies.append(self._cookie(NOTICE, "", "; Max-Age=0"))
        return self.notice

    def _cookie(self, name: str, value: str, more: str) -> str:
        prefix, secure = (HOST_ONLY, "; Secure") if self.secure else ("", "")
        return f"{prefix}{name}{self.mark}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{more}"

    def _signature(self, nonce: bytes) -> bytes:
        return hmac.digest((self.value or "").encode(), nonce, "sha256")


def mark_of(base_path: str) -> str:
    """Return the end of the names of cookies, which differs between installations with different base paths."""
    return f"_{hashlib.sha256(base_path.encode()).hexdigest()[:MARK_LENGTH]}" if base_path else ""


def read(cookies: Mapping[str, str], mark: str, *, secure: bool) -> tuple[str | None, str | None]:
    """Return the browser's cookie and the notice of the previous page, each None if absent or malformed."""
    prefix = HOST_ONLY if secure else ""
    value = cookies.get(prefix + COOKIE + mark)
    return value if value and VALUE.fullmatch(value) else None, _notice(cookies.get(prefix + NOTICE + mark))


def _spell(notice: str) -> str:
    return urlsafe_b64encode(json.dumps(notice, ensure_ascii=False).encode()).decode()


def _notice(text: str | None) -> str | None:
    if not text or len(text) > LONGEST_NOTICE:
        return None
    with suppress(ValueError):
        found = json.loads(urlsafe_b64decode(text))
        return found if isinstance(found, str) and found.encode() else None  # raises for half of a surrogate pair
    return None
