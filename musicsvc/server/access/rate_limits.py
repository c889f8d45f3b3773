"""The rate limits that apply to a request, and the response headers that describe them (docs/limits.md).

RateLimit-Policy and RateLimit follow draft-ietf-httpapi-ratelimit-headers; X-RateLimit-* describe the tightest limit.
"""

import hashlib
from collections.abc import Awaitable, Sequence
from typing import NamedTuple, NoReturn

from musicsvc.config import PERIODS, Limits, rate
from musicsvc.errors import TooMany
from musicsvc.networks import client_network
from musicsvc.server.access.rate_limit_counter import RateLimitCounter
from musicsvc.server.call import Call
from musicsvc.server.routes.route import Family, RateLimit, Route
from musicsvc.store.rate_limits.window import SECOND, Hit, Limit, Status
from musicsvc.wording import quantity

# Failures to give an account's password, from one address.
ATTEMPTS_ON_ACCOUNT = Limit("sign_in_account", 10, 300 * SECOND)
ATTEMPTS_BY_ADDRESS = Limit("sign_in_address", 50, 3_600 * SECOND)
DESCRIPTIONS = {
    "token": "{} request{s} {} for this token",
    "address": "{} request{s} {} without a valid token, for your address,",
    "register": "{} registration{s} {} for your address",
    "password_links": "{} unknown link{s} {} for your address",
    "exports": "{} export{s} {} for this token",
    "downloads": "{} download{s} {} for this account",
    "cover_art": "{} cover-art preview{s} {} for this token",
    "reports": "{} shared report{s} {} for your address",
    "session": "{} page{s} {} for this account",
    "sign_in": "{} sign-in{s} {} for this account or your network",
}
PER = {seconds: f"{'an' if name == 'hour' else 'a'} {name}" for name, seconds in PERIODS.items()}
UNITS = ((3600, "hour"), (60, "minute"))
HEADERS = ("RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


class Attempt(NamedTuple):
    """The counted hits of a password check whose result is not known yet."""

    failures: Sequence[Hit] = ()
    sign_ins: Sequence[Hit] = ()

    @property
    def hits(self) -> Sequence[Hit]:
        return [*self.failures, *self.sign_ins]


class RateLimiter:
    def __init__(self, settings: Limits, counter: RateLimitCounter) -> None:
        self._counter = counter
        self._token = _limit("token", settings.token)
        self._address = _limit("address", settings.address)
        self._session = _limit("session", settings.session)
        self._downloads = _limit("downloads", settings.exports)
        self._sign_in = _limit("sign_in", settings.sign_in)
        self._endpoint_limits = {
            RateLimit.REGISTER: _limit("register", settings.registrations),
            RateLimit.PASSWORD_LINKS: _limit("password_links", settings.password_links),
            RateLimit.EXPORTS: _limit("exports", settings.exports),
            RateLimit.COVER_ART: _limit("cover_art", settings.cover_art),
            RateLimit.REPORTS: _limit("reports", settings.reports),
        }

    def applies_to(self, route: Route, call: Call) -> bool:
        """Return whether rate limits apply to the request. Files, pictures and health checks are exempt."""
        return call.judged and route.family is not Family.PLAIN

    def count(self, route: Route, call: Call) -> Awaitable[None] | None:
        """Count a request for its token or, without a valid token, for its address. Raises TooMany beyond a limit.

        If other processes count too, the request is counted when the caller has awaited what this method returns.
        """
        if not self.applies_to(route, call) or not (hits := self._hits(route, call)):
            return None
        counted = self._counter.count(hits)
        if not isinstance(counted, list):
            return self._wait(counted, hits, call)
        self._note(counted, hits, call)
        return None

    async def count_unknown(self, route: Route, call: Call) -> None:
        """Count a request whose one-time link does not exist for its address. Raises TooMany beyond the limit."""
        if route.limit is RateLimit.PASSWORD_LINKS and self.applies_to(route, call):
            hits = [Hit(self._endpoint_limits[route.limit], client_network(call.address))]
            self._note(await self._statuses(hits), call.counted, call)

    async def _wait(self, counted: Awaitable[list[Status]], hits: Sequence[Hit], call: Call) -> None:
        self._note(await counted, hits, call)

    async def _statuses(self, hits: Sequence[Hit]) -> list[Status]:
        counted = self._counter.count(hits)
        return counted if isinstance(counted, list) else await counted

    @staticmethod
    def _note(statuses: Sequence[Status], hits: Sequence[Hit], call: Call) -> None:
        """Note in the call toward which limits it was counted. Raises TooMany if a limit is exceeded."""
        call.headers |= headers(statuses)
        for status in statuses:
            if not status.allowed:
                _refuse(statuses, call)
        call.counted = hits

    async def uncount(self, call: Call) -> None:
        counted, call.counted = call.counted, ()
        if counted:
            await self._counter.uncount(counted)

    async def count_attempt(self, account: str, call: Call, *, sign_in: bool) -> Attempt:
        """Count a password check for `account` as failed and, if it is a `sign_in`, as successful too.

        Call this before the password is verified, so that parallel attempts stay within the limits, and `settle`
        afterwards. Raises TooMany beyond a limit.
        """
        if not call.judged:
            return Attempt()
        network = client_network(call.address)
        digest = hashlib.sha256(account.encode()).hexdigest()[:32]
        failures = [Hit(ATTEMPTS_ON_ACCOUNT, f"{digest} {network}"), Hit(ATTEMPTS_BY_ADDRESS, network)]
        subjects = (f"account {digest}", f"network {network}") if sign_in else ()
        attempt = Attempt(failures, [Hit(self._sign_in, subject) for subject in subjects])
        statuses = await self._statuses(attempt.hits)
        if exceeded := [status for status in statuses if not status.allowed]:
            call.headers.update(headers(exceeded))
            _refuse(exceeded, call)
        return attempt

    async def settle(self, attempt: Attempt, *, right: bool | None) -> None:
        """Undo what an attempt was not: a failure or a sign-in. `right`: the password was, or None: not verified."""
        undone = attempt.hits if right is None else attempt.failures if right else attempt.sign_ins
        if undone:
            await self._counter.uncount(undone)

    def _hits(self, route: Route, call: Call) -> list[Hit]:
        if route.family is Family.PAGE:
            hits = [] if call.session_id is None else [Hit(self._session, str(call.account_id))]
            if route.limit is RateLimit.EXPORTS:
                hits.append(Hit(self._downloads, str(call.account_id)))
            elif route.limit is not None and route.limit is not RateLimit.PASSWORD_LINKS:
                hits.append(Hit(self._endpoint_limits[route.limit], client_network(call.address)))
            return hits
        by_token = call.token_id is not None
        hits = [Hit(self._token, str(call.token_id)) if by_token else Hit(self._address, client_network(call.address))]
        if route.limit is None:
            return hits
        if route.limit is RateLimit.REGISTER:
            hits.append(Hit(self._endpoint_limits[route.limit], client_network(call.address)))
        elif by_token:
            hits.append(Hit(self._endpoint_limits[route.limit], str(call.token_id)))
        return hits


def headers(statuses: Sequence[Status]) -> dict[str, str]:
    """Return the rate-limit response headers. `statuses`: the state of each rate limit of the request."""
    each = [_items(status) for status in statuses]
    tightest, (policies, left) = statuses[0], each[0]
    if len(statuses) > 1:
        tightest = min(statuses, key=lambda status: (status.remaining, -status.wait))
        policies, left = map(", ".join, zip(*each, strict=True))
    policy, status, amount, remaining, reset = HEADERS
    return {
        policy: policies,
        status: left,
        amount: str(tightest.limit.amount),
        remaining: str(tightest.remaining),
        reset: str(_seconds(tightest.wait)),
    }


def _items(status: Status) -> tuple[str, str]:
    """Return the items of RateLimit-Policy and of RateLimit."""
    limit, _, remaining, wait, _ = status
    name = limit.name
    return f'"{name}";q={limit.amount};w={limit.window // SECOND}', f'"{name}";r={remaining};t={_seconds(wait)}'


def _limit(name: str, written: str) -> Limit:
    amount, seconds = rate(written)
    return Limit(name, amount, seconds * SECOND)


def _refuse(statuses: Sequence[Status], call: Call) -> NoReturn:
    """Raise TooMany for the longest wait among the limits that are exceeded."""
    longest = max((status for status in statuses if not status.allowed), key=lambda status: status.wait)
    call.refused_by = longest.limit.name
    raise TooMany(_message(longest), _seconds(longest.wait))


def _seconds(wait: int) -> int:
    return -(-wait // SECOND) or 1


def _message(status: Status) -> str:
    limit, again = status.limit, f"Try again in {_duration(_seconds(status.wait))}."
    if limit in {ATTEMPTS_ON_ACCOUNT, ATTEMPTS_BY_ADDRESS}:
        return f"There were too many wrong passwords. {again}"
    plural = "" if limit.amount == 1 else "s"
    limit_text = DESCRIPTIONS[limit.name].format(f"{limit.amount:,}", PER[limit.window // SECOND], s=plural)
    return f"The limit of {limit_text} is spent. {again}"


def _duration(seconds: int) -> str:
    """Return the duration as text, such as `3 minutes`, rounded up."""
    size, unit = next((found for found in UNITS if seconds > 2 * found[0]), (1, "second"))
    count = -(-seconds // size)
    return quantity(count, unit)
