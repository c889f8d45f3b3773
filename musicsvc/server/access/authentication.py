"""Authenticate requests by bearer token. Tokens read from the database are cached until their tables change."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial

from musicsvc.clock import DAY, MINUTE, Clock, isoformat
from musicsvc.config import Settings
from musicsvc.errors import Failure, Forbidden, Unauthenticated
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import Call
from musicsvc.server.freshness import Freshness, Source, Stamp
from musicsvc.server.recent import Recent
from musicsvc.server.routes.route import ACCESS_REQUESTS, Access, Route
from musicsvc.store.accounts import api_access, tokens
from musicsvc.store.accounts.tokens import LIFETIME, LISTEN, Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.engine.tables import recorded

CachedIdentity = tuple[Identity | None, Source]

log = logging.getLogger("musicsvc")
CACHE_SIZE, TOKEN_BYTES = 10_000, 1024  # the most tokens that are kept, and the memory of one, about
NEVER = Stamp(-1, 0.0)
STRANGER: CachedIdentity = None, Source(NEVER, frozenset())  # a token that cannot exist
EXPIRY_HEADER = "Token-Expires-At"
EXPIRY_NOTICE = 14 * DAY  # responses carry EXPIRY_HEADER from this time before a token expires
SCHEME = "bearer"
LISTENING_SCHEMES = {SCHEME, "token"}  # players send `Authorization: Token …`
# Not in sets, and not looked up by name for each request: Python calls functions of the enumeration for that.
OPEN, ANY_LISTENER = Access.OPEN, Access.ANY_LISTENER
ANYBODY = (OPEN, ANY_LISTENER)  # a token that is not valid is none
LISTENING = (Access.LISTENER, ANY_LISTENER)
RENEWED = LIFETIME - DAY  # a listening token with less time left is read again: its end moves with its use
CLOCK_IS_BEHIND = (
    "the system clock is behind the last recorded use of token %s (%s). Tokens that expired before that time stay"
    " expired. If the recorded time is wrong, revoke the token and restart."
)
CLOCK_WAS_SET_BACK = (
    "the system clock was set back from %s. Tokens that expired before that time stay expired until a restart."
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
        self._request_path = settings.server.base_path + ACCESS_REQUESTS
        self._cache: Recent[str, CachedIdentity] = Recent(CACHE_SIZE)  # by token
        self._latest = 0
        self._latest_loaded = False
        self._told = 0  # the latest instant of which the log says that it is ahead of the clock
        self._used: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._blocked: set[int] = set()

    @property
    def size(self) -> int:
        """The bytes of the tokens that are kept, about."""
        return len(self._cache) * TOKEN_BYTES

    def forget(self) -> None:
        """Forget all tokens and times, after the database and the clock were set back."""
        self._cache.clear()
        self._latest, self._latest_loaded = 0, False
        self._used, self._written = {}, {}
        self._blocked.clear()

    def block(self, token_id: int) -> None:
        """Refuse the token until `unblock` is called, even if the database says that it is valid."""
        self._blocked.add(token_id)

    def unblock(self, token_id: int) -> None:
        self._blocked.discard(token_id)

    def authenticate(self, route: Route, header: str | None, call: Call) -> Awaitable[None] | None:
        """Find the token holder, note them in the call, and count the request toward its rate limits.

        Return None if that is done, otherwise an awaitable that does the rest: unless the token is in memory, and
        no shared counter must be asked. For limits and log, a token whose account is suspended or has no API access is
        no valid token. Raises Unauthenticated without a valid token, Forbidden without API access or the necessary
        scope, TooMany if a limit is exceeded.
        """
        # An open route needs no token; a valid token only determines which rate limit and which queue apply.
        if header is None or (route.access is OPEN and not (route.heavy or self.limiter.applies_to(route, call))):
            return self.count(route, None, None, call)
        value = token_of(header, LISTENING_SCHEMES if route.access in LISTENING else (SCHEME,))
        if value is None:
            return self.count(route, None, None if route.access in ANYBODY else Unauthenticated(), call)
        try:
            found = self._recall(value, call.at)
        except Failure:
            found = None
        return self._look_up(route, value, call) if found is None else self._admit(route, found, call)

    async def _look_up(self, route: Route, value: str, call: Call) -> None:
        try:
            found = await self._identify(value, call)
        except Failure:
            if route.access not in ANYBODY:
                raise
            found = STRANGER
        if (waiting := self._admit(route, found, call)) is not None:
            await waiting

    def _admit(self, route: Route, found: CachedIdentity, call: Call) -> Awaitable[None] | None:
        try:
            caller, refusal = self._valid(found, call.at, route), None
        except Unauthenticated as failure:
            caller, refusal = None, None if route.access in ANYBODY else failure
        if caller is not None:
            call.account_id, call.token_holder = caller.user_id, caller.api_access and not caller.suspended
            call.token_id = caller.token_id if call.token_holder else None
            if route.access is not OPEN and caller.expires_at - call.at <= EXPIRY_NOTICE:
                call.add_headers({EXPIRY_HEADER: isoformat(caller.expires_at)})
        return self.count(route, caller, refusal, call)

    def count(
        self, route: Route, caller: Identity | None, refusal: Unauthenticated | None, call: Call
    ) -> Awaitable[None] | None:
        """Count the request, then check the rights of the caller. `refusal`: the token is not valid."""
        counting = self.limiter.count(route, call)
        if counting is not None:
            return _then(counting, partial(self._require, route, caller, refusal, call))
        self._require(route, caller, refusal, call)
        return None

    def _require(self, route: Route, caller: Identity | None, refusal: Unauthenticated | None, call: Call) -> None:
        """Note the caller in the call, if the caller may use the route."""
        if refusal is not None:
            raise refusal
        if caller is None and route.access in {Access.TOKEN, Access.ACCOUNT, Access.LISTENER}:
            raise Unauthenticated
        if caller is None or route.access is OPEN:
            return
        try:
            self._require_access(caller, route)
        except Forbidden:
            if route.access is ANY_LISTENER:
                return
            raise
        self._used[caller.token_id] = call.at
        if caller.scope == "read" and route.needs_write_scope:
            raise Forbidden(READ_ONLY)
        call.caller = caller

    async def reauthenticate(self, header: str, call: Call, route: Route) -> Identity:
        """Check the token and API access again once the body has arrived. Raises Unauthenticated or Forbidden."""
        value, now = token_of(header, LISTENING_SCHEMES) or "", self._clock.now()
        current = self._valid(self._recall(value, now) or await self._identify(value, call), now, route)
        self._require_access(current, route)
        return current

    def _valid(self, found: CachedIdentity, now: int, route: Route) -> Identity:
        """Return the holder of a token. Raises Unauthenticated if it is not valid (any more), or not for the route."""
        caller = found[0]
        if caller is None or (caller.scope == LISTEN) is not (route.access in LISTENING):
            raise Unauthenticated("unknown")
        if caller.revoked or caller.token_id in self._blocked:
            raise Unauthenticated("revoked")
        # The latest instant ever seen: expired tokens stay expired if the system clock is set back.
        self._latest = max(self._latest, now)
        if self._latest >= caller.expires_at:
            raise Unauthenticated("expired")
        return caller

    def _require_access(self, caller: Identity, route: Route) -> None:
        if caller.suspended:
            objection = f" If this is a mistake, write to {self._contact}." if self._contact else ""
            raise Forbidden(tokens.SUSPENDED + objection)
        if not caller.api_access and route.access is not Access.ACCOUNT:
            raise api_access.NoAccess(self._contact, self._request_path)

    def _recall(self, value: str, now: int) -> CachedIdentity | None:
        """Return what is in memory of a token, or None if the database must be read."""
        stamp = self._freshness.now() if self._latest_loaded else None
        if stamp is None:
            return None
        entry = self._cache.recall(value)
        if entry is None:
            return None
        if (caller := entry[0]) is not None and caller.scope == LISTEN and caller.expires_at - now < RENEWED:
            return None
        return entry if self._freshness.holds(entry[1], counted=False) else None

    async def _identify(self, value: str, call: Call) -> CachedIdentity:
        if not tokens.well_formed(value):
            return STRANGER
        digest, stamp = tokens.digest(value), self._freshness.now()
        within = call.remaining(self._clock.monotonic())
        found = self._store.read(lambda: recorded(lambda: tokens.identify(digest)), within=within)
        caller, tables = await asyncio.wrap_future(found)
        entry = caller, Source(stamp or NEVER, tables)
        if stamp is not None:
            self._cache.keep(value, entry)
        if not self._latest_loaded:
            await self._load_latest()
        return entry

    async def _load_latest(self) -> None:
        """Read when the token used last was used, in case the system clock was set back while the server was down."""
        now = self._clock.now()
        token_id, used = await asyncio.wrap_future(self._store.read(tokens.latest_use))
        if used > now + MINUTE and not self._latest_loaded:
            log.warning(CLOCK_IS_BEHIND, token_id, isoformat(used))
            self._told = max(self._told, used)
        self._latest = max(self._latest, used)
        self._latest_loaded = True

    async def write_last_used(self, *, last: bool = False) -> None:
        """Write to the database when each token was last used, at most once a minute per token unless `last` is set."""
        now = self._clock.now()
        self._latest = max(self._latest, now)
        if self._latest > max(now + MINUTE, self._told):
            self._told = self._latest
            log.warning(CLOCK_WAS_SET_BACK, isoformat(self._latest))
        self._written = {token: at for token, at in self._written.items() if abs(now - at) < MINUTE}
        due = {token: at for token, at in self._used.items() if last or token not in self._written}
        if due:
            await asyncio.wrap_future(self._store.write(lambda: tokens.touch(due), counters_only=True))
            self._written |= dict.fromkeys(due, now)
            self._used = {token: at for token, at in self._used.items() if due.get(token) != at}


async def _then(waiting: Awaitable[None], act: Callable[[], None]) -> None:
    await waiting
    act()


def token_of(header: str, schemes: Collection[str] = (SCHEME,)) -> str | None:
    """Return the token in an Authorization header, or None if it has none or another scheme (docs/api.md, Tokens)."""
    scheme, _, value = header.partition(" ")
    return (value.strip(" ") or None) if scheme.lower() in schemes else None
