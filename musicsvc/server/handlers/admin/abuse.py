"""Actions of the abuse monitor, and their explanation."""

from collections.abc import Callable

from musicsvc.errors import NotFound
from musicsvc.server.schemas.fields import parse_id
from musicsvc.server.schemas.pages.admin import OlderQuery
from musicsvc.server.shapes import pages
from musicsvc.server.shapes.pages import View
from musicsvc.store.abuse import enforcement
from musicsvc.store.abuse.replay import Replay


def show(query: OlderQuery) -> View:
    """Show the tokens that the abuse monitor revoked, and the accounts that it suspended."""
    found = enforcement.newest_actions(limit=pages.WANTED, before=query.before)
    return View("admin/abuse.html", {"list": pages.newest_by_id(found, lambda action: action.id)})


def explain(id: str, replay_token: Callable[..., Replay | None]) -> View:  # noqa: A002 - the name in the path
    """Show how near a token came to each threshold of the abuse rules, and the responses to its calls."""
    token_id = parse_id(id)
    replay = None if token_id is None else replay_token(token_id, since=0)
    if replay is None:
        raise NotFound("There is no such token.")
    return View("admin/explanation.html", {"replay": replay, "answers": replay.answers.most_common()})
