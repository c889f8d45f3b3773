"""The stages that a demo puts around those of the server: they inject faults and record the journal.

A fault is found once the path and the method of a request are known, and happens whatever its token is. Pages and the
demo's own endpoints have none, and a rule concerns only endpoints in the OpenAPI document.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from email.utils import formatdate
from functools import partial
from random import Random
from typing import Literal, cast
from urllib.parse import urlsplit

from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from musicsvc.clock import SECOND as MICROSECONDS
from musicsvc.clock import Clock
from musicsvc.config import Settings
from musicsvc.errors import Conflict, Failure, Forbidden, Invalid, NotFound, TooLarge, Unauthenticated, Unavailable
from musicsvc.server.access.authentication import Authenticator, token_of
from musicsvc.server.call import CLIENT_CLOSED, Call, Exchange, Head
from musicsvc.server.demo import faults
from musicsvc.server.demo.faults import Break, Dribble, Injection, Refusal, Slow
from musicsvc.server.demo.recording import GIVEN, Recorder
from musicsvc.server.demo.rules import SEED
from musicsvc.server.demo.state import DemoState
from musicsvc.server.peer import PREFER, CrossOrigin
from musicsvc.server.request.bodies import TOO_LARGE
from musicsvc.server.request.dispatch import Stages
from musicsvc.server.request.first_steps import Connection
from musicsvc.server.request.parameters import preferences
from musicsvc.server.responses.responses import NOT_MODIFIED, Prepared, Reply, prepare, send, send_pieces, stream
from musicsvc.server.routes.route import ACCESS_REQUESTS, NO_ID, Family, Route
from musicsvc.server.schemas.reading import NOT_VALID, REQUIRED
from musicsvc.server.shapes.spooled import Spooled
from musicsvc.store.accounts import api_access
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.rate_limits.window import SECOND, Status

INJECTED = "X-Demo-Injected"
HEADER = "X-Demo-Fault"
WAIT = 2 * SECOND  # until a client may come back after a 429
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
FOREIGN = "A page of another site has sent this request. If that is yours, list its origin in server.cors_origins."
HERE = "the demo injected this fault"  # in the log
NOTHING = Reply(None, CLIENT_CLOSED)
NOBODY = Identity(0, "", None, False, True, False, False, 0, "", 0)  # noqa: FBT003 - no account has this id


def _of_headers(request: BaseRequest) -> tuple[str, str | None]:
    """Return the header that names a fault, and the notation of the fault, or None if it names none."""
    if named := request.headers.getall(HEADER, ()):
        return HEADER, ", ".join(named).strip()
    code = preferences(request.headers.getall(PREFER, ())).get("code")
    return PREFER, faults.PREFERRED.get(code or "", code)


def cross_origin(settings: Settings) -> CrossOrigin:
    """Let code of the listed origins use the demo's own endpoints and its headers, too."""
    usual = CrossOrigin(settings.server.cors_origins)
    return replace(
        usual,
        paths=(*usual.paths, "/demo/"),
        sendable=f"{usual.sendable}, {HEADER}",
        readable=f"{usual.readable}, {INJECTED}",
    )


class Demo:
    """Injects faults into the stages of requests, and lets the recorder note them."""

    def __init__(
        self,
        stages: Stages,
        state: DemoState,
        settings: Settings,
        store: Store,
        clock: Clock,
        authenticator: Authenticator,
        root: str,
    ) -> None:
        """`root`: the root URL of the service."""
        self._stages = stages
        self._state = state
        self._random = Random(SEED)  # noqa: S311 - reproducible on purpose
        self._no_access = settings.access.contact_email, settings.server.base_path + ACCESS_REQUESTS
        self._store = store
        self._clock = clock
        self._authenticator = authenticator
        own = urlsplit(root)
        state.origin = f"{own.scheme}://{own.netloc}"
        port = "" if own.port is None else f":{own.port}"
        self._trusted = {*settings.server.cors_origins, *(f"{own.scheme}://{host}{port}" for host in LOOPBACK)}

    def around(self) -> Stages:
        """Return the stages of a demo. Every request takes all of them, because each can have a fault."""
        faulty = replace(
            self._stages,
            offer=lambda *_: False,
            note_unreadable=self._note_unreadable,
            admit=self._admit,
            answer=self._answer,
            respond=self._respond,
        )
        recorder = Recorder(faulty, self._state.journal, self._store, self._clock)
        return replace(faulty, process=recorder.process, respond=recorder.respond)

    def _admit(self, exchange: Exchange) -> Awaitable[None] | None:
        head, call = exchange.head, exchange.call
        injection = None if head.route.family is Family.PAGE else self._find(exchange.request, head)
        if injection is None:
            return self._stages.admit(exchange)
        exchange.given[GIVEN] = injection
        call.add_headers({INJECTED: injection.source})
        if isinstance(injection.fault, Refusal) and injection.fault.code.startswith("401-"):
            reason = cast("Literal['expired', 'revoked']", injection.fault.code.removeprefix("401-"))
            return self._authenticator.count(head.route, None, Unauthenticated(reason), call)
        return self._admit_quietly(exchange) if injection.skips_work else self._stages.admit(exchange)

    def _find(self, request: BaseRequest, head: Head) -> Injection | None:
        """Return the fault of a request: that of a header, else that of a rule. Raises Invalid for an unknown one."""
        if head.route.demo:
            return None
        name, notation = _of_headers(request)
        if notation is not None:
            try:
                return faults.inject(notation, "header", self._random)
            except ValueError as error:
                raise Invalid({name: str(error)}) from None
        if head.route.docs.undocumented:
            return None
        token = head.credentials and token_of(head.credentials)
        return self._state.rules.draw(request.method, head.route.path, token)

    async def _admit_quietly(self, exchange: Exchange) -> None:
        """Note the token holder and the rate limits of a request that has its fault even if they refuse it."""
        with suppress(Failure):
            if (waiting := self._stages.admit(exchange)) is not None:
                await waiting

    async def _answer(self, exchange: Exchange) -> Reply:
        injection: Injection | None = exchange.given.get(GIVEN)
        if exchange.head.route.demo:
            if exchange.peer.forwarded:
                raise NotFound
            self._require_trusted(exchange.request)
        if injection is None:
            return await self._stages.answer(exchange)
        if isinstance(injection.fault, Refusal):
            return await self._refuse(exchange, injection.fault.code)
        if injection.skips_work:
            return NOTHING
        if injection.fault is Break.DUPLICATE and exchange.head.route.writes:
            await self._stages.answer(exchange)
        return await self._stages.answer(exchange)

    def _require_trusted(self, request: BaseRequest) -> None:
        """Raise Forbidden if a page of another site has sent the request, which a browser allows any page."""
        origins = request.headers.getall(hdrs.ORIGIN, [])
        own = request.headers.get("Sec-Fetch-Site", "none") in {"same-origin", "none"}
        if not self._trusted.issuperset(origins) or not (origins or own):
            raise Forbidden(FOREIGN)

    async def _refuse(self, exchange: Exchange, code: str) -> Reply:
        """Raise the failure. The body is received first, as for most failures of this kind."""
        route, call = exchange.head.route, exchange.call
        if code == "429":
            await self._spend_limit(route, call)
        if route.body is not None and code != "413":
            with suppress(Failure):
                await self._stages.receive(exchange)
        raise await self._not_found(exchange) if code == "404" else self._failure(code, route)

    async def _not_found(self, exchange: Exchange) -> NotFound:
        """Return the failure of the request as it would be if the object of its path did not exist."""
        subject, call, texts = exchange.head.route.subject, exchange.call, [*exchange.head.values.values()]
        if subject is not None:
            sources = {"caller": call.caller or NOBODY, "now": call.at}
            find = partial(subject.load, *subject.absent(*texts), sources=sources)
            try:
                await asyncio.wrap_future(self._store.read(find))
            except NotFound as failure:
                return NotFound(failure.message.replace(NO_ID, texts[0]))
            except Failure:  # for lack of a right, or of the database
                pass
        return NotFound()

    async def _spend_limit(self, route: Route, call: Call) -> None:
        """Raise TooMany as if all rate limits of the request were exceeded."""
        limiter = self._authenticator.limiter
        await limiter.uncount(call)
        hits = limiter.hits(route, call)
        limiter.note([Status(hit.limit, allowed=False, remaining=0, wait=WAIT, began=0) for hit in hits], hits, call)

    def _failure(self, code: str, route: Route) -> Failure:
        failures: dict[str, Failure] = {
            "403": api_access.NoAccess(*self._no_access),
            "409": Conflict("The request conflicts with the current state."),
            "413": TooLarge(TOO_LARGE.format(1)),
            "422": Invalid(_field_error(route)),
            "500": Failure(HERE),
            "503": Unavailable(here=HERE),
        }
        return failures[code]

    async def _respond(self, exchange: Exchange, reply: Reply) -> StreamResponse:
        injection: Injection | None = exchange.given.get(GIVEN)
        if injection is not None and isinstance(injection.fault, Slow):
            await asyncio.sleep(injection.delay)
        exchange.call.add_headers(self._date())
        if injection is None:
            return await self._stages.respond(exchange, reply)
        fault = injection.fault
        if isinstance(fault, Refusal | Slow) or fault is Break.DUPLICATE:
            return await self._stages.respond(exchange, reply)
        if fault is Break.CUT or fault is Break.RESET:
            await _close(exchange.request, orderly=fault is Break.CUT)
            return Response(status=CLIENT_CLOSED)
        return await _send_badly(exchange, reply, fault)

    def _note_unreadable(self, address: str, status: int, size: int, headers: dict[str, str]) -> None:
        headers |= self._date()
        self._stages.note_unreadable(address, status, size, headers)

    def _date(self) -> dict[str, str]:
        """Return the header with the time of the demo."""
        return {hdrs.DATE: formatdate(self._clock.now() // MICROSECONDS, usegmt=True)}


async def _send_badly(exchange: Exchange, reply: Reply, fault: Dribble | Break) -> StreamResponse:
    """Send the response in pieces, or half of it and nothing more, or nothing."""
    request, call = exchange.request, exchange.call
    response = await prepare(request, reply, call.headers, call.request_id)
    if fault is Break.LOST_RESPONSE:
        await _close(request)
        return Response(status=response.status, body=await _whole(response))  # for the log; it cannot be sent
    if request.method == hdrs.METH_HEAD or response.status == NOT_MODIFIED:
        return await send(request, response, reply.cookies)
    sent, body = stream(response, reply.cookies), await _whole(response)
    if isinstance(fault, Dribble):
        return await send_pieces(request, sent, _cut(body, fault.pieces), fault.pause)
    await send_pieces(request, sent, [body[: len(body) // 2]])
    await _close(request)
    return sent


async def _close(request: BaseRequest, *, orderly: bool = True) -> None:
    connection = cast("Connection", request.protocol)
    if orderly:
        await connection.hang_up()
    else:
        connection.abort()


async def _whole(response: Prepared) -> bytes:
    """Return the body of the response, and close its file."""
    if isinstance(response.body, Spooled):
        with response.body.file as file:
            return await asyncio.to_thread(file.read)
    return b"".join(response.body)


def _cut(body: bytes, count: int) -> list[bytes]:
    """Return the body in `count` pieces of about the same length, in fewer if it is shorter."""
    count = min(count, len(body))
    return [body[len(body) * at // count : len(body) * (at + 1) // count] for at in range(count)]


def _field_error(route: Route) -> dict[str, str]:
    """Return a message for a field or a parameter of the request."""
    schema = route.body or route.query
    fields = {} if schema is None else {each.alias or name: each for name, each in schema.model_fields.items()}
    required = [name for name, each in fields.items() if each.is_required()]
    return {required[0]: REQUIRED} if required else {next(iter(fields), "body"): NOT_VALID}
