"""Requests that may be sent again: with an `Idempotency-Key` (docs/api.md, Sending a request again), and forms."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import orjson

from musicsvc.server.call import Exchange
from musicsvc.server.peer import KEY
from musicsvc.server.responses.large import encode
from musicsvc.server.schemas.reading import ParsedBody
from musicsvc.server.shapes.envelope import Encoded
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import kept_answers
from musicsvc.store.accounts.kept_answers import Keyed
from musicsvc.store.plays import counting

LONGEST = 64
MALFORMED = f"Must be one header with 1 to {LONGEST} visible ASCII characters, with or without quotes around them."


def note(exchange: Exchange) -> None:
    """Note the key of the request, if it has one: an empty one if it is malformed."""
    lines = exchange.request.headers.getall(KEY, None)
    if lines is not None:
        key = ",".join(lines) if len(lines) == 1 else ""
        key = key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key
        exchange.key = key if len(key) <= LONGEST and all("!" <= sign <= "~" for sign in key) else ""


def note_form(exchange: Exchange, sent: Mapping[str, str]) -> None:
    """Let a form act once, however often it is sent: each form that is shown has a token of its own."""
    exchange.body_hash = hashlib.sha256(orjson.dumps(sent, option=orjson.OPT_SORT_KEYS)).digest()
    exchange.key = exchange.body_hash.hex()


def parse(exchange: Exchange, received: bytearray, parse_body: Callable[[], ParsedBody]) -> ParsedBody:
    """Parse the body of a request with a key, and note its hash. A malformed key is an error of the body."""
    exchange.body_hash = hashlib.sha256(received).digest()
    parsed = parse_body()
    return parsed if exchange.key else replace(parsed, errors={KEY: MALFORMED, **parsed.errors})


def once(exchange: Exchange, unit: Callable[[], Any], now: int) -> Callable[[], Any]:
    """Return a unit that calls `unit`, or returns the answer of the same request before: encoded, or a redirect."""
    account = exchange.call.account_id
    if not exchange.key or account is None:
        return unit
    asked = Keyed(account, exchange.key, exchange.path, exchange.body_hash)

    def run() -> Any:
        found = kept_answers.once(asked, unit, _encode, now=now)
        if not isinstance(found, bytes):
            return found
        if exchange.browser is not None:
            return Redirect(**orjson.loads(found))
        counting.share()
        counting.add((), ())  # plays are acknowledged once they are counted
        return Encoded([found])

    return run


def _encode(result: Any) -> bytes | None:
    kept = result.again if isinstance(result, View) else result
    return None if kept is None else b"".join(encode(asdict(kept) if isinstance(kept, Redirect) else kept).pieces)
