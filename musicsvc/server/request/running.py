"""Runs the handler of a request in one transaction, after the checks of its fields, its object and its password."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from aiohttp.web import BaseRequest

from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import InProgress, Invalid, MissingReference, Unauthenticated
from musicsvc.server.access.rate_limits import RateLimiter
from musicsvc.server.call import FAILED_SIGN_IN, Call, Exchange
from musicsvc.server.peer import REPLAYED
from musicsvc.server.request import keys
from musicsvc.server.request.executors import PREPARING, Executors, Work
from musicsvc.server.request.reads import Reads
from musicsvc.server.responses.large import EXPECTED, AnswerBuilder, AnswerMemory, Reservation, encoded
from musicsvc.server.routes.route import Family, PasswordOf, RateLimit, Route, Runs
from musicsvc.server.schemas import fields
from musicsvc.server.schemas.fields import Query
from musicsvc.server.schemas.reading import check_query
from musicsvc.server.shapes.envelope import Download, Encoded
from musicsvc.store.accounts import email_addresses, passwords, sign_in, users
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.engine import sql
from musicsvc.store.engine.store import Store

PATIENCE_SECONDS, FIRST_PAUSE = 5.0, 0.05  # until another request with its key has ended
PROBE_SECONDS = 1.5  # for a health check, which must respond within two seconds
MISPLACED = "Must be sent in the body, not in the query."


class HandlerRunner:
    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        limiter: RateLimiter,
        executors: Executors,
        sources: Mapping[str, Any],
    ) -> None:
        """`sources`: objects by parameter name. A handler with a parameter of that name gets the object."""
        self._store = store
        self._reads = Reads(store)
        self._clock = clock
        self._limiter = limiter
        self._executors = executors
        self._sources = {"settings": settings, **sources}
        self.memory = AnswerMemory(settings.server.answer_memory)

    async def run(self, exchange: Exchange) -> Any:
        """Return the result of the handler, encoded if it is JSON, with memory reserved for it.

        Raises InProgress if another request with its key runs for longer than 5 seconds.
        """
        ends, pause = self._clock.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE
        while True:
            try:
                return await self._run_once(exchange)
            except InProgress:
                if self._clock.monotonic() >= ends:
                    raise
            await asyncio.sleep(pause)
            pause *= 1.5

    async def _run_once(self, exchange: Exchange) -> Any:
        route, call, request = exchange.head.route, exchange.call, exchange.request
        call.reservation = room = call.reservation or Reservation(self.memory, call.address, call.holder)
        name = page_size_name(route, request) if route.query is not None else ""
        fragments = None if exchange.slot is None else exchange.slot.fragments
        builder = AnswerBuilder(room, name, nests_tracks=route.cost.nests_tracks, fragments=fragments)
        now, body = self._clock.now(), exchange.parsed and exchange.parsed.model
        query, errors = read_query(route, request, now)
        errors = {**exchange.head.handling.errors(), **errors}
        call.resource = call.resource or (None if query is None else query.resource)
        sources = {
            **self._sources,
            "caller": call.caller,
            "peer": exchange.peer,
            "credentials": exchange.head.credentials,
            "answer": builder,
            "body": body,
            "query": query,
            "now": now,
            **exchange.given,
        }
        if body is not None and not errors:
            await self._prepare(exchange, sources)
        unit, read = self._unit(exchange, sources, build_check(exchange, sources, errors))
        large = route.cost.nests_tracks and isinstance(query, fields.Pages) and query.large and call.caller is not None
        if large:
            room.resize(EXPECTED)  # before anything is read
        try:
            result = await self._run(route, unit, read, call, large=large)
        except MissingReference:
            await self._require_account(call)
            raise
        if route.cost.settles:
            await asyncio.sleep(self._store.lag)
        _note(exchange, result)
        if route.call_render is not None and not isinstance(result, Download):
            draw = partial(route.call_render, sources | {"drawing": result})
            kind, key = Work.FIGURES if route.cost.runs is Runs.FIGURES else Work.DRAWING, getattr(result, "key", None)
            result = await self._executors.run(kind, draw, call, key)
        return builder.finish(result, writes=route.writes, drawn=route.call_render is not None)

    def _unit(
        self, exchange: Exchange, sources: Mapping[str, Any], check: Callable[[], Any]
    ) -> tuple[Callable[[], Any], Callable[..., Future[Any]]]:
        """Return the unit of work that answers the request, and the function that runs it if it only reads.

        The unit calls `check`, then the handler, perhaps repeatedly.
        """
        route, account, values = exchange.head.route, exchange.call.account_id, exchange.head.values
        query = exchange.request.rel_url.raw_query_string

        def answer() -> Any:
            result = route.call_handler({**sources, **values, "subject": check()})
            # Reads are encoded here, off the event loop; writes after the unit of work, which blocks other writes.
            return result if route.writes or route.call_render is not None else encoded(result, query)

        unit: Callable[[], Any] = answer
        if route.writes:
            unit = self._store.counted(keys.once(exchange, unit, sources["now"]), account)
        if exchange.slot is not None:
            unit = partial(exchange.slot.read, unit)
        return unit, partial(
            self._store.read_figures, check=check, account=account
        ) if route.cost.replica else self._store.read

    async def _require_account(self, call: Call) -> None:
        """Raise Unauthenticated if the caller's account was deleted after the token or session was checked."""
        if (caller := call.caller) is not None:
            missing = partial(users.missing, [caller.user_id])
            if await asyncio.wrap_future(self._store.read(missing, within=self._remaining(call))):
                raise Unauthenticated("unknown")

    async def _prepare(self, exchange: Exchange, sources: dict[str, Any]) -> None:
        """Verify the password of the body, and do the slow work that the handler needs, such as hashing another."""
        route, call, body = exchange.head.route, exchange.call, sources["body"]
        if route.password is not None:
            sources["verified"] = await self._verify(route, body, call)
        if route.call_prepare is not None:
            if route.subject is not None:
                find = partial(route.subject.load, *exchange.head.values.values(), sources=sources)
                await asyncio.wrap_future(self._store.read(find, within=self._remaining(call)))
            work = partial(route.call_prepare, sources)
            kind = Work.MATCHING if route.family is Family.LISTENS else PREPARING[route.limit]
            sources["prepared"] = await self._executors.run(kind, work, call)

    async def _verify(self, route: Route, body: Any, call: Call) -> Credentials | None:
        """Return the credentials of the account whose password the body has, or None if the password is wrong.

        The account is the caller's or, as `route.password` says, has the e-mail address in the body. Takes equally long
        if it does not exist, is suspended or has no password. Counts failures and sign-ins (docs/api.md, Signing in);
        raises TooMany after too many.
        """
        own = call.caller if route.password is PasswordOf.CALLER else None
        find = partial(sign_in.by_id, own.user_id) if own is not None else partial(sign_in.by_email, body.email)
        found = self._store.read(find, within=self._remaining(call))
        credentials: Credentials | None = await asyncio.wrap_future(found)
        named = str(own.user_id) if own is not None else email_addresses.normalize(body.email)
        account = named if credentials is None else str(credentials.user_id)
        attempt = await self._limiter.count_attempt(account, call, sign_in=own is None)
        hashed = credentials and credentials.password_hash
        try:
            compare = partial(passwords.matches, hashed, body.password)
            right = await self._executors.run(Work.SIGNING_IN, compare, call)
        except BaseException:
            await self._limiter.settle(attempt, right=None)
            raise
        await self._limiter.settle(attempt, right=right)
        if not (right or own):
            call.tally = {FAILED_SIGN_IN: 1}
        return credentials if right else None

    async def _run(
        self, route: Route, unit: Callable[[], Any], read: Callable[..., Future[Any]], call: Call, *, large: bool
    ) -> Any:
        if route.constant:
            return unit()
        runs = route.cost.runs
        if runs is Runs.IN_TURN:
            return await self._executors.run(Work.IN_TURN, unit, call)
        if runs is Runs.NO_STORE:
            return await asyncio.to_thread(unit)  # the handler may read files, which would block the event loop
        kind = _line(route, call, large=large)
        if kind is None:
            return await self._run_at_once(route, unit, read, self._remaining(call))
        run = self._store.write if route.writes else read
        work = sql.without_cache()(unit) if large else unit  # large reads do not fill SQLite's caches
        return await self._executors.run(kind, lambda: run(work).result(), call)

    def _run_at_once(
        self, route: Route, unit: Callable[[], Any], read: Callable[..., Future[Any]], within: float
    ) -> Awaitable[Any]:
        """Run a unit of work that fails with Unavailable after `within` seconds."""
        if route.cost.probe is not None:
            return asyncio.wrap_future(self._store.probe(unit, within=min(within, PROBE_SECONDS)))
        if route.cost.urgent:
            return asyncio.wrap_future(self._store.write(unit, urgent=True, within=within))
        if route.writes:
            return self._store.write_on_loop(unit, counters_only=route.cost.counters_only, within=within)
        if route.cacheable:
            return self._reads.run(unit, within)
        return asyncio.wrap_future(read(unit, within=within))

    def _remaining(self, call: Call) -> float:
        return call.remaining(self._clock.monotonic())


def _note(exchange: Exchange, result: Any) -> None:
    """Note the numbers for metrics of the handler's result, or that it is the answer to the same request before."""
    route, call = exchange.head.route, exchange.call
    if exchange.key and isinstance(result, Encoded):
        call.add_headers({REPLAYED: "true"})
    elif route.cost.tally:
        call.tally = route.cost.tally(result)


def _line(route: Route, call: Call, *, large: bool) -> Work | None:
    """Return the kind of slow work that the handler does, or None. Only few requests of a kind run at once."""
    if route.cost.runs is Runs.SLOW:
        return Work.EXPORTING
    if route.cost.runs is Runs.FIGURES and route.call_render is None:
        return Work.FIGURES
    if route.call_render is not None and not call.token_holder:
        return Work.LOOKING_UP  # anybody may request pictures, at any rate
    return Work.BUILDING if large else None


def read_query(route: Route, request: BaseRequest, now: int) -> tuple[Query | None, dict[str, str]]:
    """Validate the query string. Return (query, no errors), or None and a message for each wrong parameter.

    Export endpoints take their fields from the body, so fields in the query string are errors there, not ignored.
    """
    if route.query is not None:
        sent = parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True, errors="surrogateescape")
        return check_query(route.query, sent, now=now)
    if route.body is None or route.limit is not RateLimit.EXPORTS or route.family is not Family.INSIGHTS:
        return None, {}
    fields = {field.alias or name: MISPLACED for name, field in route.body.model_fields.items()}
    known = {**fields, **route.body.misnamed}
    return None, {name: known[name] for name in request.query if name in known}


def build_check(exchange: Exchange, sources: Mapping[str, Any], errors: dict[str, str]) -> Callable[[], Any]:
    """Return a function that checks all fields, and returns the object of the path. Call it in a transaction.

    `errors`: those found before, beside those of the body.
    """
    route, values, parsed = exchange.head.route, exchange.head.values, exchange.parsed

    def check() -> Any:
        subject = None
        if route.subject is not None:
            subject = route.subject.load(*values.values(), sources=sources)
        found = (parsed.errors if parsed is not None else {}) | errors
        if route.body is not None and parsed is not None and isinstance(parsed.sent, dict):
            found |= route.body.check_against_store(parsed.sent, found, subject)
        if found:
            raise Invalid(found)
        return subject

    return check


def page_size_name(route: Route, request: BaseRequest) -> str:
    """Return the name of the page-size parameter that the query uses, or the endpoint's usual name if it has none."""
    names = ("perPage", "per_page")
    return next((name for name in names if name in request.query), getattr(route.query, "size_name", names[0]))
