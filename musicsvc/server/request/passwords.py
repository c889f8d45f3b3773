"""Verifies the passwords in bodies, with limits on failures, before a handler runs (docs/api.md, Signing in)."""

import asyncio
from functools import partial
from typing import Any

from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import FAILED_SIGN_IN, Call
from musicsvc.server.request.executors import Executors, Work
from musicsvc.server.routes.route import PasswordOf, Route
from musicsvc.store.accounts import email_addresses, passwords, sign_in
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.engine.store import Store


class PasswordVerifier:
    def __init__(self, store: Store, limiter: RateLimiter, executors: Executors) -> None:
        self._store = store
        self._limiter = limiter
        self._executors = executors

    async def verify(self, route: Route, body: Any, caller: Any, call: Call) -> Credentials | None:
        """Return the credentials of the account whose password the body has, or None if the password is wrong.

        Takes equally long if the account does not exist, is suspended or has no password. Counts failures and
        sign-ins; raises TooMany after too many. `caller`: the account to verify, if `route.password` says so; otherwise
        the account has the e-mail address in the body.
        """
        own = route.password is PasswordOf.CALLER
        find = partial(sign_in.by_id, caller.user_id) if own else partial(sign_in.by_email, body.email)
        credentials: Credentials | None = await asyncio.wrap_future(self._store.read(find))
        named = str(caller.user_id) if own else email_addresses.normalize(body.email)
        account = named if credentials is None else str(credentials.user_id)
        attempt = await self._limiter.count_attempt(account, call, sign_in=not own)
        hashed = credentials and credentials.password_hash
        try:
            compare = partial(passwords.matches, hashed, body.password)
            right = await self._executors.run(Work.SIGNING_IN, compare, token_holder=call.token_holder)
        except BaseException:
            await self._limiter.settle(attempt, right=None)
            raise
        await self._limiter.settle(attempt, right=right)
        if not (right or own):
            call.tally = {FAILED_SIGN_IN: 1}
        return credentials if right else None
