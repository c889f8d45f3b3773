"""From the Authorization header to the caller; a checked token is kept until the database changes."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

from musicsvc.clock import DAY, MINUTE, isoformat
from musicsvc.errors import Failure, Forbidden, Unauthenticated
from musicsvc.server.routes.route import Access
from musicsvc.store.accounts import tokens

if TYPE_CHECKING:
    from musicsvc.clock import Clock
    from musicsvc.config import Settings
    from musicsvc.server.access.rate_limits import RateLimiter
    from musicsvc.server.call import Call
    from musicsvc.server.routes.route import Route
    from musicsvc.store.accounts.tokens import Identity
    from musicsvc.store.engine.store import Store

log = logging.getLogger("musicsvc")
KEPT = 10_000
EXPIRY_HEADER = "Token-Expires-At"
EXPIRY_NOTICE = 14 * DAY  # before its end, every answer to a token says when it expires
SCHEME = "bearer "
BEHIND = (
    "the clock is behind the last use of token %s, %s: what had ended by then stays ended;"
    " if the clock was wrong then, revoke that token and restart"
)


class Authenticator:
    """Tells who calls, and refuses who may not."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, limiter: RateLimiter) -> None:
        self._store = store
        self._limiter = limiter
        self._clock = clock
        self._contact = settings.access.contact_email
        self._checked: OrderedDict[bytes, Identity | None] = OrderedDict()
        self._version: int | None = None
        self._latest = 0
        self._looked_back = False
        self._used: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._ended: set[int] = set()

    def block(self, token_id: int) -> None:
        """Refuse the token from now on, whatever the store says, until it is released."""
        self._ended.add(token_id)

    def unblock(self, token_id: int) -> None:
        """Go by the store again."""
        self._ended.discard(token_id)

    async def authenticate(self, route: Route, header: str | None, call: Call) -> Identity | None:
        """The caller, None in the public tier; noted on the call, and counted.

        Raises Unauthenticated, Forbidden without API access, and TooMany where a limit is spent.
        """
        try:
            caller = await self._holder(route, header, call)
        except Unauthenticated:
            await self._limiter.count_address(route, call)
            raise
        if caller is None:
            await self._limiter.count_address(route, call)
            if route.access is Access.TOKEN:
                raise Unauthenticated
            return None
        call.account_id, call.token_id = caller.user_id, caller.token_id
        if caller.expires_at - self._clock.now() <= EXPIRY_NOTICE:
            call.headers[EXPIRY_HEADER] = isoformat(caller.expires_at)
        call.token_holder = caller.api_access and not caller.suspended
        if route.access is Access.OPEN:
            await self._limiter.count_token(route, call)
            return None
        self._require_access(caller)
        await self._limiter.count_token(route, call)
        self._used[caller.token_id] = self._clock.now()
        return caller

    async def uncount(self, call: Call) -> None:
        """Take back what `authenticate` counted, where there is no capacity to serve the request."""
        await self._limiter.uncount(call)

    async def reauthenticate(self, caller: Identity, header: str) -> Identity:
        """Check an admitted caller again, once the body of the request has arrived; nothing is counted.

        Raises Unauthenticated where the token has been revoked meanwhile, and Forbidden where the account has been
        suspended or its API access withdrawn.
        """
        current = await self._checked_holder(header)
        if current.token_id != caller.token_id:
            raise Unauthenticated("unknown")
        self._require_access(current)
        return current

    async def _holder(self, route: Route, header: str | None, call: Call) -> Identity | None:
        """Return the holder of the token that was sent, None without one. Raises Unauthenticated if it is invalid."""
        if header is None:
            return None
        if route.access is not Access.OPEN:
            return await self._checked_holder(header)
        # Such a route asks for no token; one decides what the request counts to and whom it waits for, nothing else.
        if route.heavy or self._limiter.applies_to(route, call):
            with suppress(Failure):
                return await self._checked_holder(header)
        return None

    async def _checked_holder(self, header: str) -> Identity:
        caller = await self._identify(header)
        if caller is None:
            raise Unauthenticated("unknown")
        if caller.revoked or caller.token_id in self._ended:
            raise Unauthenticated("revoked")
        if await self._instant() >= caller.expires_at:
            raise Unauthenticated("expired")
        return caller

    async def _instant(self) -> int:
        """The latest instant that was seen, before this process began too: a clock set back revives no token."""
        now = self._clock.now()
        self._latest = max(self._latest, now)
        if not self._looked_back:
            token_id, used = await asyncio.wrap_future(self._store.read(tokens.latest_use))
            if used > now + MINUTE and not self._looked_back:
                log.warning(BEHIND, token_id, isoformat(used))
            self._latest = max(self._latest, used)
            self._looked_back = True
        return self._latest

    def _require_access(self, caller: Identity) -> None:
        if caller.suspended:
            raise Forbidden("The account is suspended.")
        if not caller.api_access:
            hint = f" Ask for it at {self._contact}." if self._contact else ""
            raise Forbidden(f"The account has no API access.{hint}")

    async def _identify(self, header: str) -> Identity | None:
        scheme, value = header[: len(SCHEME)], header[len(SCHEME) :]
        if scheme.lower() != SCHEME or not tokens.well_formed(value):
            return None
        digest = tokens.digest(value)
        version = self._store.changes()
        if version != self._version:
            self._checked.clear()
            self._version = version
        if version is not None and digest in self._checked:
            self._checked.move_to_end(digest)
            return self._checked[digest]
        caller = await asyncio.wrap_future(self._store.read(lambda: tokens.identify(digest)))
        if version is not None and version == self._version:
            self._checked[digest] = caller
            if len(self._checked) > KEPT:
                self._checked.popitem(last=False)
        return caller

    async def write_last_used(self, *, last: bool = False) -> None:
        """Persist when tokens were last used, at most once a minute a token; off the path of any request."""
        now = self._clock.now()
        self._latest = max(self._latest, now)
        self._written = {token: at for token, at in self._written.items() if abs(now - at) < MINUTE}
        due = {token: at for token, at in self._used.items() if last or token not in self._written}
        if due:
            await asyncio.wrap_future(self._store.write(lambda: tokens.touch(due)))
            self._written |= dict.fromkeys(due, now)
            self._used = {token: at for token, at in self._used.items() if due.get(token) != at}
