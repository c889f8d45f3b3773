"""Show who called most, or is near a limit: the sums of the activity log with names and links, for pages."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlencode

from musicsvc.clock import DAY, HOUR, isoformat
from musicsvc.config import Settings
from musicsvc.errors import Failure
from musicsvc.store.accounts import tokens
from musicsvc.store.activity import top
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.sums import OTHERS
from musicsvc.store.activity.top import Caller, Window
from musicsvc.store.models import Token

RECENT = DAY
FEW = 5  # tokens, and addresses, near a limit
NAMELESS = {"token": "without a token", "address": OTHERS, "route": "no endpoint"}


class ShownCaller(NamedTuple):
    """A row of the table: the sums, the token if it is one and not deleted, and the query of its calls, if any."""

    by: str
    text: str
    sums: Caller
    token: Token | None
    state: str | None
    query: str | None


def near_limits(log: Log, settings: Settings, now: int) -> list[ShownCaller]:
    """Return who was near a limit or a rule in the last 24 hours. If the log cannot be read, nobody."""
    window = Window.around(now - RECENT, None, now, settings.activity.keep_days)
    shown: list[ShownCaller] = []
    with suppress(Failure):
        for by in ("token", "address"):
            found = top.find(log, by, window, settings, limit=FEW, near=True)
            shown += name_callers(found.callers, by, window, now)
    return shown


def of_tokens(log: Log, ids: Collection[int], settings: Settings, now: int) -> Mapping[int, Caller] | None:
    """Return the sums of tokens in the last 24 hours, or None if the log cannot be read."""
    window = Window.around(now - RECENT, None, now, settings.activity.keep_days)
    with suppress(Failure):
        found = top.find(log, "token", window, settings, limit=len(ids) or 1, keys=[str(each) for each in ids] or [" "])
        return {int(caller.key): caller for caller in found.callers}
    return None


def name_callers(callers: Sequence[Caller], by: str, window: Window, now: int) -> list[ShownCaller]:
    """Add the names of tokens, and the query of the calls of each. Use it in a transaction of the database."""
    known: dict[str, Token] = {}
    if by == "token":
        ids = [int(caller.key) for caller in callers if caller.key]
        known = {str(token.id): token for token in tokens.list(ids=ids)}
    times = {"since": _hour(window.start), "until": _hour(window.end)}
    shown = []
    for caller in callers:
        token, text = known.get(caller.key), caller.key or NAMELESS[by]
        if by == "token" and caller.key:
            text = token.name if token else f"token {caller.key}"
        query = None
        if caller.key and not (by == "address" and caller.key == OTHERS):
            query = urlencode({"kind": "calls", by: caller.key, **times, "hidden": "shown"})
        state = None if token is None else tokens.state(token, now)
        shown.append(ShownCaller(by, text, caller, token, state, query))
    return shown


def _hour(hour: int) -> str:
    return f"{isoformat(hour * HOUR)[:16]}Z"
