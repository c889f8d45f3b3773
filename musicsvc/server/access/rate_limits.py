"""The rate limits that apply to a request, and the response headers that describe them (docs/limits.md).

RateLimit-Policy and RateLimit follow draft-ietf-httpapi-ratelimit-headers; X-RateLimit-* describe the tightest limit.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from musicsvc.config import PERIODS, rate
from musicsvc.errors import TooMany
from musicsvc.networks import client_network
from musicsvc.server.routes.route import Family, RateLimit
from musicsvc.store.rate_limits.window import SECOND, Hit, Limit
from musicsvc.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from musicsvc.config import Limits
    from musicsvc.server.access.rate_limit_counter import RateLimitCounter
    from musicsvc.server.call import Call
    from musicsvc.server.routes.route import Route
    from musicsvc.store.rate_limits.window import Status

# Failures to give an account's password, from one address.
ATTEMPTS_ON_ACCOUNT = Limit("sign_in_account", 10, 300 * SECOND)
ATTEMPTS_BY_ADDRESS = Limit("sign_in_address", 50, 3_600 * SECOND)
DESCRIPTIONS = {
    "token": "{} request{s} {} for this token",
    "address": "{} request{s} {} without a valid token, for your address,",
    "register": "{} registration{s} {} for your address",
    "password_links": "{} unknown link{s} {} for your address",
    "exports": "{} export{s} {} for this token",
    "cover_art": "{} cover-art preview{s} {} for this token",
    "reports": "{} shared report{s} {} for your address",
    "session": "{} page{s} {} for this session",
}
PER = {seconds: f"{'an' if name == 'hour' else 'a'} {name}" for name, seconds in PERIODS.items()}
UNITS = ((3600, "hour"), (60, "minute"))
HEADERS = ("RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


class RateLimiter:
    def __init__(self, settings: Limits, counter: RateLimitCounter) -> None:
        self._counter = counter
        self._token = _limit("token", settings.token)
        self._address = _limit("address", settings.address)
        self._session = _limit("session", settings.session)
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

    async def count(self, route: Route, call: Call) -> None:
        """Count a request for its token or, without a valid token, for its address. Raises TooMany beyond a limit."""
        if self.applies_to(route, call) and (hits := self._hits(route, call)):
            await self._count(hits, call)
            call.counted = hits

    async def count_unknown(self, route: Route, call: Call) -> None:
        """Count a request whose one-time link does not exist for its address. Raises TooMany beyond the limit."""
        if route.limit is RateLimit.PASSWORD_LINKS and self.applies_to(route, call):
            await self._count([Hit(self._endpoint_limits[route.limit], client_network(call.address))], call)

    async def _count(self, hits: Sequence[Hit], call: Call) -> None:
        statuses = await self._counter.count(hits)
        call.headers.update(headers(statuses))
        if refused := [status for status in statuses if not status.allowed]:
            longest = max(refused, key=lambda status: status.wait)
            call.refused_by = longest.limit.name
            raise TooMany(_message(longest), _seconds(longest))

    def count_at_once(self, calls: Sequence[tuple[Route, Call]]) -> list[Mapping[str, str] | None]:
        """Count several requests without waiting.

        Return for each the response headers, or None if it was not counted, because a limit is exceeded or because
        the counter is busy. Pass such a request to `count`.
        """
        limited = [at for at, (route, call) in enumerate(calls) if self.applies_to(route, call)]
        found: list[Mapping[str, str] | None] = [{} for _ in calls]
        counted = self._counter.count_at_once([self._hits(*calls[at]) for at in limited])
        for at, statuses in zip(limited, counted, strict=True):
            found[at] = headers(statuses) if statuses and all(status.allowed for status in statuses) else None
        return found

    async def uncount(self, call: Call) -> None:
        if call.counted:
            await self._counter.uncount(call.counted)

    async def count_attempt(self, account: str, call: Call) -> Sequence[Hit]:
        """Count a password check for `account` as failed, before its result is known. Raises TooMany beyond a limit.

        Return the counted hits. Pass them to `forgive` if the password is right.
        """
        if not call.judged:
            return ()
        network = client_network(call.address)
        digest = hashlib.sha256(account.encode()).hexdigest()[:32]
        hits = [Hit(ATTEMPTS_ON_ACCOUNT, f"{digest} {network}"), Hit(ATTEMPTS_BY_ADDRESS, network)]
        refused = [status for status in await self._counter.count(hits) if not status.allowed]
        if refused:
            longest = max(refused, key=lambda status: status.wait)
            call.refused_by = longest.limit.name
            seconds = _seconds(longest)
            raise TooMany(f"There were too many wrong passwords. Try again in {_duration(seconds)}.", seconds)
        return hits

    async def forgive(self, attempt: Sequence[Hit]) -> None:
        """Undo the counting of a password check, because the password was right or was not verified."""
        if attempt:
            await self._counter.uncount(attempt)

    def _hits(self, route: Route, call: Call) -> list[Hit]:
        if route.family is Family.PAGE:
            hits = [] if call.session_id is None else [Hit(self._session, str(call.session_id))]
            if route.limit is not None and route.limit is not RateLimit.PASSWORD_LINKS:
                hits.append(Hit(self._endpoint_limits[route.limit], client_network(call.address)))
            return hits
        by_token = call.token_id is not None
        hits = [Hit(self._token, str(call.token_id)) if by_token else Hit(self._address, client_network(call.address))]
        if route.limit is RateLimit.REGISTER:
            hits.append(Hit(self._endpoint_limits[route.limit], client_network(call.address)))
        elif route.limit is not None and by_token:
            hits.append(Hit(self._endpoint_limits[route.limit], str(call.token_id)))
        return hits


def headers(statuses: Sequence[Status]) -> dict[str, str]:
    """Return the rate-limit response headers. `statuses`: the state of each rate limit of the request."""
    tightest = min(statuses, key=lambda status: (status.remaining, -status.wait))
    policies = (f'"{each.limit.name}";q={each.limit.amount};w={each.limit.window // SECOND}' for each in statuses)
    left = (f'"{each.limit.name}";r={each.remaining};t={_seconds(each)}' for each in statuses)
    values = (
        ", ".join(policies),
        ", ".join(left),
        str(tightest.limit.amount),
        str(tightest.remaining),
        str(_seconds(tightest)),
    )
    return dict(zip(HEADERS, values, strict=True))


def _limit(name: str, written: str) -> Limit:
    amount, seconds = rate(written)
    return Limit(name, amount, seconds * SECOND)


def _seconds(status: Status) -> int:
    return max(1, -(-status.wait // SECOND))


def _message(status: Status) -> str:
    limit = status.limit
    plural = "" if limit.amount == 1 else "s"
    limit_text = DESCRIPTIONS[limit.name].format(f"{limit.amount:,}", PER[limit.window // SECOND], s=plural)
    return f"The limit of {limit_text} is spent. Try again in {_duration(_seconds(status))}."


def _duration(seconds: int) -> str:
    """Return the duration as text, such as `3 minutes`, rounded up."""
    size, unit = next((found for found in UNITS if seconds > 2 * found[0]), (1, "second"))
    count = -(-seconds // size)
    return quantity(count, unit)
