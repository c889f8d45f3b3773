"""The rate limits that apply to a request, how it is counted, and the response headers that describe them.

Requests are counted in memory for a single worker on SQLite, otherwise in a counter that processes share
(docs/limits.md). While that fails, each process of a machine counts in memory. Over several machines the processes
would allow more than the limit together, so they refuse what they have not counted in advance.

RateLimit-Policy and RateLimit follow draft-ietf-httpapi-ratelimit-headers; X-RateLimit-* describe the tightest limit.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple, NoReturn, TypeVar

from musicsvc.clock import Clock
from musicsvc.config import Limits
from musicsvc.errors import Crowded, Overloaded, TooMany, Unavailable
from musicsvc.networks import client_network
from musicsvc.server.call import Call
from musicsvc.server.logs.throttled_warning import ThrottledWarning
from musicsvc.server.routes.route import Family, RateLimit, Route
from musicsvc.setting_types import PERIODS, rate
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.url import path_of
from musicsvc.store.rate_limits.shared import Leases, SharedHitCounter
from musicsvc.store.rate_limits.window import SECOND, Hit, Limit, MemoryHitCounter, Status
from musicsvc.wording import quantity

T = TypeVar("T")
PLAIN, LISTENS, PAGE = Family.PLAIN, Family.LISTENS, Family.PAGE  # Python looks them up slowly
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
LINES = "".join(f"{name}: %s\r\n" for name in HEADERS)
LEFT, PLACE = '"%s";r=%s;t=%s', "\0"
MOST_TOKENS = 4096  # whose hits are kept
RESET_IN = "X-RateLimit-Reset-In"  # players read it
PATIENCE_SECONDS = 2.0
PURGE_SECONDS = 5.0
WARNING_SECONDS = 300.0  # between two warnings; the shared counter may fail and recover repeatedly


class Attempt(NamedTuple):
    """The counted hits of a password check whose result is not known yet."""

    failures: Sequence[Hit] = ()
    sign_ins: Sequence[Hit] = ()

    @property
    def hits(self) -> Sequence[Hit]:
        return [*self.failures, *self.sign_ins]


class RateLimitCounter:
    def __init__(self, store: Store, clock: Clock, workers: int = 1) -> None:
        """`workers`: the number of processes of the server."""
        self._clock = clock
        self._memory = MemoryHitCounter(self._milliseconds)
        self._shared = shared_counter(store, self._milliseconds, workers)
        self._leases = Leases(self._milliseconds)
        self._fails = False
        self._thread = ThreadPoolExecutor(1, "counting")
        self._waiting: list[tuple[Sequence[Hit], asyncio.Future[list[Status]]]] = []
        self._counting: asyncio.Task[None] | None = None
        self._warning = ThrottledWarning(WARNING_SECONDS, clock.monotonic)
        self._purged = float("-inf")

    def count(self, hits: Sequence[Hit]) -> list[Status] | Awaitable[list[Status]]:
        """Count a request toward all its rate limits, or toward none if one is exceeded.

        Return each limit's status or, if the counter that processes share must be asked, an awaitable for it.
        """
        if self._shared is None or (self._fails and not self._shared.spans_machines):
            return self._memory.count(hits)
        if leased := self._leases.spend(hits):
            return leased
        future: asyncio.Future[list[Status]] = asyncio.get_running_loop().create_future()
        self._waiting.append((hits, future))
        if self._counting is None:
            self._counting = asyncio.create_task(self._count_waiting(self._shared))
        return future

    async def _count_waiting(self, shared: SharedHitCounter) -> None:
        """Count the requests that wait. Those that arrive meanwhile are counted together afterwards."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            counted = await self._count_together(shared, [hits for hits, _ in waiting])
            for (_, future), statuses in zip(waiting, counted, strict=True):
                if future.done():  # the client may have disconnected
                    continue
                if statuses:
                    future.set_result(statuses)
                else:
                    future.set_exception(Unavailable(here="The request cannot be counted toward its rate limits."))
        self._counting = None

    async def _count_together(self, shared: SharedHitCounter, requests: list[Sequence[Hit]]) -> list[list[Status]]:
        """Return the statuses of each request, or none if it cannot be counted."""
        leased = [self._leases.spend(hits) for hits in requests]
        rest = [hits for hits, statuses in zip(requests, leased, strict=True) if not statuses]
        if rest and (shared.spans_machines or not self._fails):
            with suppress(Unavailable):
                counted = iter(await self._ask(shared, rest))
                return [statuses or next(counted) for statuses in leased]
        if shared.spans_machines:
            return leased
        return [statuses or self._memory.count(hits) for hits, statuses in zip(requests, leased, strict=True)]

    async def _ask(self, shared: SharedHitCounter, requests: Sequence[Sequence[Hit]] = ()) -> list[list[Status]]:
        """Count requests, and some in advance, after what is left of leases that end was given back."""
        now = self._milliseconds()
        unused, wanted = self._leases.end(requests, now)
        together = [*requests, *wanted]
        counted: list[list[Status]] = []
        if unused or together:
            counted = await self._run(shared, lambda: shared.count_all(together, unused))
        self._leases.begin([*zip(together, counted, strict=True)], len(requests), now)
        return counted

    async def uncount(self, hits: Sequence[Hit]) -> None:
        """Undo the counting of a request that was allowed but could not be served."""
        if (shared := self._shared) is None or self._fails:
            self._memory.uncount(hits)
            return
        with suppress(Unavailable):
            await self._run(shared, lambda: shared.uncount(hits))

    def forget(self) -> None:
        """Forget the counts in memory."""
        self._memory = MemoryHitCounter(self._milliseconds)

    async def _run(self, shared: SharedHitCounter, work: Callable[[], T]) -> T:
        """Run `work` of the shared counter on its thread. If that fails, log the reason."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                done = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except TimeoutError:
            reason = "the shared counter did not respond in time"
        except Exception as error:  # noqa: BLE001 - requests that wait for their count would wait for ever
            reason = getattr(error, "here", repr(error)).rstrip(".")
        else:
            self._fails = False
            return done
        self._fails = True
        if shared.spans_machines:
            self._warning.warn("the shared rate-limit counter failed, limited requests get 503 for now: %s.", reason)
        else:
            self._warning.warn(
                "the shared rate-limit counter failed, each process counts separately for now: %s.", reason
            )
        raise Unavailable(here=reason)

    async def maintain(self) -> None:
        """Delete expired counts. Switch back to the shared counter if it works again."""
        self._memory.purge()
        if (shared := self._shared) is None:
            return
        with suppress(Unavailable):
            await self._run(shared, shared.check)
            await self._ask(shared)
            if self._clock.monotonic() - self._purged >= PURGE_SECONDS:
                self._purged = self._clock.monotonic()
                await self._run(shared, shared.purge)

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)
        if self._shared is not None:
            await asyncio.to_thread(self._shared.close)

    def _milliseconds(self) -> int:
        return int(self._clock.monotonic() * 1000)


def shared_counter(store: Store, clock: Callable[[], int], workers: int) -> SharedHitCounter | None:
    """Return the counter that all processes with the database share, or None if there are no others."""
    path = path_of(store.url)
    if path is None:
        from musicsvc.store.rate_limits.postgres import PostgresHitCounter  # noqa: PLC0415 - loads its driver only if used

        return PostgresHitCounter(store)
    if workers == 1:
        return None
    from musicsvc.store.rate_limits.sqlite import SqliteHitCounter, file_of  # noqa: PLC0415 - the same

    return SqliteHitCounter(file_of(path), clock)


class RateLimiter:
    def __init__(self, settings: Limits, counter: RateLimitCounter) -> None:
        self._counter = counter
        self._token = _limit("token", settings.token)
        self._address = _limit("address", settings.address)
        self._session = _limit("session", settings.session)
        self._downloads = _limit("downloads", settings.exports)
        self._sign_in = _limit("sign_in", settings.sign_in)
        self._of_token = lru_cache(MOST_TOKENS)(lambda token_id: (Hit(self._token, str(token_id)),))
        written = settings.model_dump()
        self._endpoint_limits = {each: _limit(each.value, written[each.value]) for each in RateLimit}

    def applies_to(self, route: Route, call: Call) -> bool:
        """Return whether rate limits apply to the request. Files, pictures and health checks are exempt."""
        return call.limits_apply and route.family is not PLAIN

    def count(self, route: Route, call: Call) -> Awaitable[None] | None:
        """Count a request for its token or, without a valid token, for its address. Raises TooMany beyond a limit.

        If it returns an awaitable, the request is counted when that is done: other processes count, too.
        """
        if not self.applies_to(route, call) or not (hits := self.hits(route, call)):
            return None
        counted = self._counter.count(hits)
        if not isinstance(counted, list):
            return self._wait(counted, hits, call)
        self.note(counted, hits, call)
        return None

    async def count_unknown(self, route: Route, call: Call) -> None:
        """Count a request whose one-time link does not exist for its address. Raises TooMany beyond the limit."""
        if route.limit is RateLimit.PASSWORD_LINKS and self.applies_to(route, call):
            hits = [Hit(self._endpoint_limits[route.limit], client_network(call.address))]
            self.note(await self._statuses(hits), call.counted, call)

    async def _wait(self, counted: Awaitable[list[Status]], hits: Sequence[Hit], call: Call) -> None:
        self.note(await counted, hits, call)

    async def _statuses(self, hits: Sequence[Hit]) -> list[Status]:
        counted = self._counter.count(hits)
        return counted if isinstance(counted, list) else await counted

    @staticmethod
    def note(statuses: Sequence[Status], hits: Sequence[Hit], call: Call) -> None:
        """Note in the call toward which limits it was counted. Raises TooMany if a limit is exceeded."""
        call.limits = describe(statuses)
        if call.route is not None and call.route.family is LISTENS:
            call.limits += f"{RESET_IN}: {call.limits.rpartition(' ')[2]}"
        for status in statuses:
            if not status.allowed:
                _refuse(statuses, call)
        call.counted = hits

    async def uncount(self, call: Call, refusal: Overloaded | None = None) -> None:
        """Undo the counting of a request that was not served. `refusal`: why it was not.

        A client that left others no room is counted toward the limits that are the endpoint's own.
        """
        general = {self._token, self._address, self._session}
        undone = [hit for hit in call.counted if not isinstance(refusal, Crowded) or hit.limit in general]
        call.counted = [hit for hit in call.counted if hit not in undone]
        if undone:
            await self._counter.uncount(undone)

    async def count_attempt(self, account: str, call: Call, *, sign_in: bool) -> Attempt:
        """Count a password check for `account` as failed and, if it is a `sign_in`, as successful too.

        Call this before the password is verified, so that parallel attempts stay within the limits, and `settle`
        afterwards. Raises TooMany beyond a limit.
        """
        if not call.limits_apply:
            return Attempt()
        network = client_network(call.address)
        digest = hashlib.sha256(account.encode()).hexdigest()[:32]
        failures = [Hit(ATTEMPTS_ON_ACCOUNT, f"{digest} {network}"), Hit(ATTEMPTS_BY_ADDRESS, network)]
        subjects = (f"account {digest}", f"network {network}") if sign_in else ()
        attempt = Attempt(failures, [Hit(self._sign_in, subject) for subject in subjects])
        statuses = await self._statuses(attempt.hits)
        if exceeded := [status for status in statuses if not status.allowed]:
            call.limits = describe(exceeded)
            _refuse(exceeded, call)
        return attempt

    async def settle(self, attempt: Attempt, *, right: bool | None) -> None:
        """Undo what an attempt was not: a failure or a sign-in. `right`: the password was, or None: not verified."""
        undone = attempt.hits if right is None else attempt.failures if right else attempt.sign_ins
        if undone:
            await self._counter.uncount(undone)

    def hits(self, route: Route, call: Call) -> Sequence[Hit]:
        """Return the rate limits of a request, each with the token or the address that it counts for."""
        if route.family is PAGE:
            hits = [] if call.session_id is None else [Hit(self._session, str(call.account_id))]
            if route.limit is RateLimit.EXPORTS:
                hits.append(Hit(self._downloads, str(call.account_id)))
            elif route.limit is not None and route.limit is not RateLimit.PASSWORD_LINKS:
                hits.append(Hit(self._endpoint_limits[route.limit], client_network(call.address)))
            return hits
        by_token = call.token_id is not None
        general = self._of_token(call.token_id) if by_token else (Hit(self._address, client_network(call.address)),)
        if route.limit is None:
            return general
        if route.limit is RateLimit.REGISTER:
            return *general, Hit(self._endpoint_limits[route.limit], client_network(call.address))
        if by_token:
            return *general, Hit(self._endpoint_limits[route.limit], str(call.token_id))
        return general


def describe(statuses: Sequence[Status]) -> str:
    """Return the rate-limit response headers as lines. `statuses`: the state of each rate limit of the request."""
    if len(statuses) == 1:
        limit, _, remaining, wait, _ = statuses[0]
        seconds = _seconds(wait)
        first, second, third, fourth, last = _parts(limit.name, limit.amount, limit.window)
        return f"{first}{remaining}{second}{seconds}{third}{remaining}{fourth}{seconds}{last}"
    tightest = min(statuses, key=lambda status: (status.remaining, -status.wait))
    seconds = _seconds(tightest.wait)
    policies = ", ".join(_policy(limit.name, limit.amount, limit.window) for limit, *_ in statuses)
    left = ", ".join(LEFT % (limit.name, remaining, _seconds(wait)) for limit, _, remaining, wait, _ in statuses)
    return LINES % (policies, left, tightest.limit.amount, tightest.remaining, seconds)


@lru_cache
def _parts(name: str, amount: int, window: int) -> Sequence[str]:
    """Return the lines of a single limit, split where numbers differ from request to request."""
    left = LEFT % (name, PLACE, PLACE)
    return (LINES % (_policy(name, amount, window), left, amount, PLACE, PLACE)).split(PLACE)


def _policy(name: str, amount: int, window: int) -> str:
    return f'"{name}";q={amount};w={window // SECOND}'


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
    return f"The limit of {limit_text} is reached. {again}"


def _duration(seconds: int) -> str:
    """Return the duration as text, such as `3 minutes`, rounded up."""
    size, unit = next((found for found in UNITS if seconds > 2 * found[0]), (1, "second"))
    count = -(-seconds // size)
    return quantity(count, unit)
