"""The pages to connect a player, and of listens that match no track."""

from musicsvc.clock import MINUTE
from musicsvc.errors import Failure, Invalid
from musicsvc.server.handlers.pages import developers
from musicsvc.server.schemas.pages.accounts import ListensQuery, NameForm, PlayerForm
from musicsvc.server.shapes.envelope import Site
from musicsvc.server.shapes.pages import Redirect, View
from musicsvc.store.accounts import sign_in, tokens, users
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.catalog import names, tracks
from musicsvc.store.engine.pagination import Page
from musicsvc.store.listens import missing, pending, refusals
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import quantity

LISTENS = "/settings/listens"
REASONS: dict[refusals.Reason, str] = {
    "off": "This service does not take listens of your own.",
    "old": "They were heard more than 14 days before they came in.",
    "pruned": "Plays of that day are not kept any more.",
    "future": "They were heard in the future, by the clock of the player.",
    "half_minute": "You listened to something else in that half minute.",
    "day_full": "You had the most listens of a day already.",
    "waiting": "Too many listens wait for their track already.",
}


def show(caller: SessionIdentity, site: Site, now: int) -> View:
    """Show how to connect a player, the players that are connected, and when one reported a listen last."""
    user = users.get(caller.user_id)
    of_players = [token for token in tokens.in_force(user, now=now) if token.scope == tokens.LISTEN]
    heard = pending.last_heard(user.id)
    values = {
        "root": site.root,
        "players": of_players,
        "heard": heard and (_ago(now - heard[0]), heard[1]),
        "user": user,
    }
    return View("player.html", values)


def _ago(length: int) -> str:
    return "just now" if length < MINUTE else developers.moment_from(-length)


def connect(body: PlayerForm, verified: Credentials | None, site: Site, now: int) -> View:
    """Create a listening token, and show what to type into the player; the token is not shown again."""
    user = sign_in.require(verified)
    token, value = tokens.create(user, body.name, scope=tokens.LISTEN, now=now, actor="page")
    values = {"token": token, "value": value, "root": site.root, "user": user}
    return View("player_value.html", values, again=developers.shown_once(token))


def show_listens(query: ListensQuery, caller: SessionIdentity) -> View:
    """Show the listens of the account that match no track, and how many were refused, and why."""
    found = pending.list_own(Page(query.page), actor=caller)
    refused = [(number, REASONS[reason], at) for reason, number, at in refusals.of_account(caller.user_id)]
    told = {"refused": refused, "missing": missing.of_manager(caller.user_id)}
    return View("listens.html", told | {"found": found, "rows": found.rows})


def name(subject: int, body: NameForm, query: ListensQuery, caller: SessionIdentity, now: int) -> Redirect:
    """Count pending listens as plays of the track that the form names. Raises Invalid if there is no such track."""
    try:
        track = names.find_id("track", body.track)
    except Failure as error:  # none or several have this name
        raise Invalid({"track": str(error)}) from error
    if tracks.missing([track]):
        raise Invalid({"track": tracks.UNKNOWN})
    pending.name(subject, track, actor=caller, now=now)
    return _back(query, "The listens are counted as plays of that track.")


def dismiss(subject: int, query: ListensQuery, caller: SessionIdentity) -> Redirect:
    """Delete the pending listens of one artist and title."""
    pending.dismiss(subject, actor=caller)
    return _back(query, "The listens are dismissed.")


def _back(query: ListensQuery, notice: str) -> Redirect:
    return Redirect(LISTENS if query.page == 1 else f"{LISTENS}?page={query.page}", notice)


def dismiss_all(caller: SessionIdentity) -> Redirect:
    """Delete all pending listens of the account."""
    total = pending.list_own(Page(), actor=caller).total
    pending.dismiss(None, actor=caller)
    return Redirect(LISTENS, f"{quantity(total, 'title')} dismissed.")
