"""Kinds of visitors of pages, and the status that each of them expects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from musicsvc.server.routes.route import SAFE, Access, Route
from musicsvc.store.accounts import users
from musicsvc.store.security import sessions as store_sessions
from tests.rights.world import PASSWORD_HASH
from tests.support.shared_server import Shared

OWNER, STRANGER, ADMINISTRATOR = "owner", "stranger", "administrator"
SIGNED_IN = (OWNER, STRANGER, ADMINISTRATOR)
SIGNED_OUT = ("signed out", "suspended", "session ended")
VISITORS = (*SIGNED_OUT, *SIGNED_IN)
ADMINISTRATORS_PAGE = 404


class PageWorld:
    """An account of the owner and one of the visitor, with their sessions."""

    def __init__(self, shared: Shared, number: int, who: str = OWNER) -> None:
        self.shared = shared
        self.domain = f"pages{number}.test"
        self.ids: dict[str, int] = {}
        self.sessions: dict[str, str] = {}
        self.do(lambda: self._create(who))

    def email(self, who: str) -> str:
        return f"{who.replace(' ', '-')}@{self.domain}"

    def do(self, unit: Callable[[], Any]) -> Any:
        """Return the result of a write transaction."""
        return self.shared.store.write(unit).result()

    def _create(self, visitor: str) -> None:
        now = self.shared.clock.now()
        for who in {OWNER, visitor} - {"signed out"}:
            admin = who == ADMINISTRATOR
            user = users.create(self.email(who), password_hash=PASSWORD_HASH, admin=admin, api_access=True, now=now)
            self.ids[who] = user.id
            self.sessions[who] = store_sessions.create(user, address="127.0.0.1", agent="Tests/1.0", now=now)
            if who == "suspended":
                users.suspend(user, now=now)
            if who == "session ended":
                store_sessions.end_all(user.id)


@dataclass(frozen=True)
class PageRight:
    """The expected status for each kind of visitor who may see a page at all; the row says who that is.

    `make` returns the values of the path's parameters, of what belongs to the owner. `form`: the fields that are sent.
    `status` is that of success; `stranger`: the status for another account, if it differs.
    """

    make: Callable[[PageWorld], Mapping[str, Any]] = lambda _: {}
    form: Callable[[PageWorld], Mapping[str, str]] = lambda _: {}
    status: int = 0
    stranger: int = 0
    others: Mapping[str, int] = field(default_factory=dict)  # further exceptions, by visitor
    query: str = ""

    def expected(self, route: Route) -> dict[str, int]:
        """Return the status for each kind of visitor."""
        success = self.status or (200 if route.method in SAFE else 303)
        found = dict.fromkeys(VISITORS, success)
        if route.access is not Access.OPEN:
            found |= dict.fromkeys(SIGNED_OUT, 303)
        if route.access is Access.ADMIN:
            found |= {OWNER: ADMINISTRATORS_PAGE, STRANGER: ADMINISTRATORS_PAGE}
        if self.stranger:
            found |= {STRANGER: self.stranger, ADMINISTRATOR: self.stranger}
        return found | dict(self.others)
