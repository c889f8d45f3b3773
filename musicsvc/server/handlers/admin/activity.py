"""Show API calls and security events on the pages of administration, and who called most."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from musicsvc.clock import HOUR, parse_time_or_age
from musicsvc.config import Settings
from musicsvc.errors import NotFound
from musicsvc.server.handlers.admin import callers
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.schemas.pages.admin import ActivityQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import FormState, View
from musicsvc.store.accounts import users
from musicsvc.store.activity import calls, top
from musicsvc.store.activity.log import Log
from musicsvc.store.activity.timeline import Timeline, build_filters
from musicsvc.store.engine.store import Store
from musicsvc.store.security import security_events
from musicsvc.store.security.sessions import SessionIdentity

Filters = tuple[calls.Filter | None, security_events.Filter | None]

PATH = "/admin/activity"
MOST_CALLERS = 20
NARROWING = ("account", "token", "address", "status", "route", "before")  # filters that show no sums
FILES = ("/static/{name}", "/docs/{name}", *(f"/thumbnails/{kind}/{{id}}" for kind in ("artist", "album", "track")))


def show(
    query: ActivityQuery, caller: SessionIdentity, store: Store, activity_log: Log, settings: Settings, now: int
) -> View:
    """Show who called most, then calls and events. Calls for static files and of the caller are hidden by default."""
    keep_days = settings.activity.keep_days
    filters, errors = _filters(query, store, now)
    filters = _without_noise(filters, query, caller)
    found = [] if errors else Timeline(store, activity_log, *filters).newest(pages.WANTED)[::-1]
    ids = {each for row in found for each in (row.account_id, getattr(row, "actor_id", None)) if each is not None}
    emails = store.read(lambda: users.emails(ids)).result()
    form = FormState(PATH, query.model_dump(), errors)
    kept = query.model_dump(exclude={"before"}, exclude_defaults=True)
    values = {
        "list": pages.newest_by_time(found),
        "emails": emails,
        "filters": form,
        "kept": kept,
        "keep_days": keep_days,
        "sums": None,
    }
    if not errors and not any(getattr(query, name) for name in NARROWING):
        values["sums"] = _sums(query, filters[0], store, activity_log, settings, now)
    values["kept_window"] = {name: value for name, value in kept.items() if name != "until"}
    values["without_noise"] = {name: value for name, value in kept.items() if name != "hidden"}
    return View("admin/activity.html", values, status=422 if errors else 200)


def _sums(
    query: ActivityQuery, calls_of: calls.Filter | None, store: Store, log: Log, settings: Settings, now: int
) -> Mapping[str, Any]:
    """Return who called most in the window of the query, by default the last 24 hours."""
    since, until = (calls_of.since, calls_of.until) if calls_of else (None, None)
    window = top.Window.around(
        now - callers.RECENT if since is None else since, until, now, settings.activity.keep_days
    )
    found = top.find(log, query.by, window, settings, limit=MOST_CALLERS)
    return {
        "rows": store.read(lambda: callers.name_callers(found.callers, query.by, window, now)).result(),
        "more": found.total - len(found.callers),
        "unsummed": found.unsummed,
        "start": window.start * HOUR,
        "end": window.end * HOUR,
    }


def _without_noise(filters: Filters, query: ActivityQuery, caller: SessionIdentity) -> Filters:
    """Return the filters without calls that rarely matter, unless the query asks for them, also by account or route."""
    of_calls, of_events = filters
    if of_calls is None or query.hidden:
        return filters
    files, clicks = () if query.route else FILES, None if query.account else caller.user_id
    return replace(of_calls, without_routes=files, without_clicks_of=clicks), of_events


def _filters(query: ActivityQuery, store: Store, now: int) -> tuple[Filters, dict[str, str]]:
    """Return the filters of the shown entries, and an error message for each invalid search field."""
    errors: dict[str, str] = {}

    def parse(name: str, parser: Callable[[str], Any]) -> Any:
        """Return the parsed value of a search field, or None if it is empty or invalid. Store the error, if any."""
        text = getattr(query, name)
        try:
            return parser(text) if text else None
        except (NotFound, ValueError) as error:
            errors[name] = str(error)
            return None

    of_calls = {
        "address": query.address or None,
        "route": query.route or None,
        "statuses": parse("status", calls.parse_statuses),
    }
    common = {
        "account_id": parse("account", lambda email: store.read(lambda: users.by_email(email)).result().id),
        "token_id": parse("token", _token_id),
        "since": parse("since", lambda text: _time(text, now)),
        "until": min(filter(None, (query.before, parse("until", lambda text: _time(text, now)))), default=None),
    }
    if None not in {since := common["since"], end := common["until"]} and end <= since:
        errors["until"] = "Must be after the beginning."
    if query.kind == "events" and any(value is not None for value in of_calls.values()):
        errors["kind"] = "Events have no address, status or route. Choose calls, or leave these fields empty."
    return build_filters(query.kind, of_calls, common), errors


def _token_id(text: str) -> int:
    if (found := parse_id(text)) is None:
        raise ValueError(f"{text!r} is not the id of a token, a whole number.")
    return found


def _time(text: str, now: int) -> int:
    try:
        return parse_time_or_age(text, now)
    except ValueError:
        raise ValueError(f"{text!r} is not a time (2026-01-31T12:00:00Z), nor an age (15m, 7d).") from None
