"""Authenticate requests by bearer token. Tokens read from the database are cached until their tables change."""

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress

from musicsvc.clock import DAY, MINUTE, Clock, isoformat
from musicsvc.config import Settings
from musicsvc.errors import Failure, Forbidden, Unauthenticated
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import Call
from musicsvc.server.freshness import Freshness, Stamp
from musicsvc.server.routes.route import Access, Route
from musicsvc.store.accounts import api_access, tokens
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import recorded

CachedIdentity = tuple["Identity | None", "Stamp", frozenset[str]]  # with the tables that it was read from

log = logging.getLogger("musicsvc")
CACHE_SIZE = 10_000
EXPIRY_HEADER = "Token-Expires-At"
EXPIRY_NOTICE = 14 * DAY  # responses carry EXPIRY_HEADER from this time before a token expires
SCHEME = "bearer "
CLOCK_IS_BEHIND = (
    "the system clock is behind the last recorded use of token %s (%s). Tokens that expired before that time stay"
    " expired. If the recorded time is wrong, revoke the token and restart."
)
READ_ONLY = "The scope of this token is read, which allows GET requests and exports. Use a token of scope read-write."


class Authenticator:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        limiter: RateLimiter,
        freshness: Freshness,
    ) -> None:
        self._store = store
        self._freshness = freshness
        self.limiter = limiter
        self._clock = clock
        self._contact = settings.access.contact_email
        self._cache: OrderedDict[bytes, CachedIdentity] = OrderedDict()
        self._latest = 0
        self._latest_loaded = False
        self._used: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._blocked: set[int] = set()

    def block(self, token_id: int) -> None:
        """Refuse the token until `unblock` is called, even if the database says that it is valid."""
        self._blocked.add(token_id)

    def unblock(self, token_id: int) -> None:
        self._blocked.discard(token_id)

    async def authenticate(self, route: Route, header: str | None, call: Call) -> Identity | None:
        """Return the token holder, or None for anonymous access. Counts the request toward its rate limits.

        For limits and log, a token whose account is suspended or has no API access is no valid token.
        Raises Unauthenticated without a valid token, Forbidden without API access or the necessary scope, TooMany if
        a limit is exceeded.
        """
        try:
            caller = await self._token_holder(route, header, call)
        except Unauthenticated:
            await self._count(route, call)
            raise
        if caller is None:
            await self._count(route, call)
            if route.access is Access.TOKEN:
                raise Unauthenticated
            return None
        call.account_id, call.token_holder = caller.user_id, caller.api_access and not caller.suspended
        call.token_id = caller.token_id if call.token_holder else None
        if route.access is not Access.OPEN and caller.expires_at - self._clock.now() <= EXPIRY_NOTICE:
            call.headers[EXPIRY_HEADER] = isoformat(caller.expires_at)
        await self._count(route, call)
        if route.access is Access.OPEN:
            return None
        self._require_access(caller)
        self._used[caller.token_id] = self._clock.now()
        if route.needs_write_scope and caller.scope != "read-write":
            raise Forbidden(READ_ONLY)
        return caller

    async def _count(self, route: Route, call: Call) -> None:
        if (counting := self.limiter.count(route, call)) is not None:
            await counting

    def known(self, header: str) -> Identity | None:
        """Return the token holder if the token is cached and valid, and will not expire within EXPIRY_NOTICE.

        Otherwise return None; the caller must then use `authenticate`. Does not count the request.
        """
        value = _token_of(header)
        known = self._cached(tokens.digest(value))[1] if value is not None and self._latest_loaded else None
        caller = known[0] if known is not None else None
        if caller is None or caller.revoked or caller.suspended or not caller.api_access:
            return None
        now = self._clock.now()
        self._latest = max(self._latest, now)
        if caller.token_id in self._blocked or caller.expires_at - self._latest <= EXPIRY_NOTICE:
            return None
        self._used[caller.token_id] = now
        return caller

    async def uncount(self, call: Call) -> None:
        """Undo the counting of a request toward its rate limits, because the server had no capacity for it."""
        await self.limiter.uncount(call)

    async def reauthenticate(self, header: str) -> Identity:
        """Check the token and API access again once the body has arrived. Raises Unauthenticated or Forbidden."""
        current = await self._valid_holder(header)
        self._require_access(current)
        return current

    async def _token_holder(self, route: Route, header: str | None, call: Call) -> Identity | None:
        """Return the token holder, or None. An invalid token raises Unauthenticated unless the route is public."""
        if header is None:
            return None
        if route.access is not Access.OPEN:
            return await self._valid_holder(header)
        # An open route needs no token; a valid token only determines which rate limit and which queue apply.
        if route.heavy or self.limiter.applies_to(route, call):
            with suppress(Failure):
                return await self._valid_holder(header)
        return None

    async def _valid_holder(self, header: str) -> Identity:
        caller = await self._identify(header)
        if caller is None:
            raise Unauthenticated("unknown")
        if caller.revoked or caller.token_id in self._blocked:
            raise Unauthenticated("revoked")
        if await self._latest_instant() >= caller.expires_at:
            raise Unauthenticated("expired")
        return caller

    async def _latest_instant(self) -> int:
        """Return the latest instant ever seen, so that expired tokens stay expired if the system clock is set back."""
        now = self._clock.now()
        self._latest = max(self._latest, now)
        if not self._latest_loaded:
            token_id, used = await asyncio.wrap_future(self._store.read(tokens.latest_use))
            if used > now + MINUTE and not self._latest_loaded:
                log.warning(CLOCK_IS_BEHIND, token_id, isoformat(used))
            self._latest = max(self._latest, used)
            self._latest_loaded = True
        return self._latest

    def _require_access(self, caller: Identity) -> None:
        if caller.suspended:
            raise Forbidden("The account is suspended.")
        if not caller.api_access:
            raise Forbidden(api_access.no_access(self._contact))

    async def _identify(self, header: str) -> Identity | None:
        value = _token_of(header)
        if value is None:
            return None
        digest = tokens.digest(value)
        stamp, known = self._cached(digest)
        if known is not None:
            return known[0]
        if not tokens.well_formed(value):
            return None
        caller, tables = await asyncio.wrap_future(self._store.read(lambda: recorded(lambda: tokens.identify(digest))))
        if stamp is not None:
            self._cache[digest] = caller, stamp, tables
            if len(self._cache) > CACHE_SIZE:
                self._cache.popitem(last=False)
        return caller

    def _cached(self, digest: bytes) -> tuple[Stamp | None, CachedIdentity | None]:
        """Return the logical time (None: nothing may be cached) and the cache entry (None: absent or outdated)."""
        stamp = self._freshness.now()
        entry = self._cache.get(digest) if stamp is not None else None
        if entry is None or not self._freshness.holds(entry[1], entry[2], counted=False):
            return stamp, None
        self._cache.move_to_end(digest)
        return stamp, entry

    async def write_last_used(self, *, last: bool = False) -> None:
        """Write to the database when each token was last used, at most once a minute per token unless `last` is set."""
        now = self._clock.now()
        self._latest = max(self._latest, now)
        self._written = {token: at for token, at in self._written.items() if abs(now - at) < MINUTE}
        due = {token: at for token, at in self._used.items() if last or token not in self._written}
        if due:
            await asyncio.wrap_future(self._store.write_counters(lambda: tokens.touch(due)))
            self._written |= dict.fromkeys(due, now)
            self._used = {token: at for token, at in self._used.items() if due.get(token) != at}


def _token_of(header: str) -> str | None:
    """Return the token in an Authorization header, or None if the header has no text that can be a token."""
    scheme, value = header[: len(SCHEME)], header[len(SCHEME) :]
    return value if scheme.lower() == SCHEME and tokens.plausible(value) else None
