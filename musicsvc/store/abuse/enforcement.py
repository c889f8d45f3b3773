"""What follows a violation: the token is revoked, after several the account is suspended; and what was taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from peewee import SQL, fn

from musicsvc.clock import SECOND
from musicsvc.store.abuse.probing_rule import DENIED, FIRST_FAILURE
from musicsvc.store.abuse.rate_limit_rule import REFUSED
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.dialect import lock_rows
from musicsvc.store.models import Activity, SecurityEvent, Token, User

if TYPE_CHECKING:
    from collections.abc import Collection

    from musicsvc.config import Abuse
    from musicsvc.store.abuse.rules import Violation
    from musicsvc.store.activity.calls import Entry

RESETS = ("token.reinstated", "token.regenerated")
WINDOWS = 2  # what is judged goes back so many windows, so that a run of refusals is seen from its beginning


class TokenStatus(NamedTuple):
    """How a token stands before it is judged: nothing counts that came before the pardon (an instant, or 0).

    The log may hold calls of another token that had the same id: a restored database gives ids again.
    """

    token_id: int
    account_id: int
    email: str
    created_at: int
    revoked_at: int | None
    revoked_reason: str | None
    reset_at: int

    @property
    def since(self) -> int:
        """The first instant whose calls count."""
        return max(self.created_at, self.reset_at + 1)

    def counts(self, entry: Entry) -> bool:
        """Whether a call under the token's id is this token's, and counts."""
        return entry.account_id == self.account_id and entry.at >= self.since


class Enforcement(NamedTuple):
    """What was done; nothing where the token was revoked already, or has been reinstated since."""

    revoked: bool
    suspended: bool


def window(rules: Abuse) -> int:
    """How far back the calls of a token are judged, in microseconds."""
    return WINDOWS * max(rules.refusal_seconds, rules.probe_seconds) * SECOND


def token_statuses(token_ids: Collection[int]) -> dict[int, TokenStatus]:
    """How these tokens stand, by id, those that are none left out."""
    wanted = list(token_ids)
    columns = (Token.id, User.id, User.email, Token.created_at, Token.revoked_at, Token.revoked_reason)
    found = Token.select(*columns).join(User).where(Token.id.in_(wanted)).tuples()
    resets = dict(_resets(wanted))
    return {row[0]: TokenStatus._make((*row, resets.get(row[0], 0))) for row in found.iterator()}


def _resets(token_ids: Collection[int]) -> Any:
    """(token id, instant) of the last time that each was reinstated, or given a new value."""
    mine = SecurityEvent.token_id.in_(list(token_ids)), SecurityEvent.kind.in_(RESETS)
    query = SecurityEvent.select(SecurityEvent.token_id, fn.MAX(SecurityEvent.at)).where(*mine)
    return query.group_by(SecurityEvent.token_id).tuples().iterator()


def enforce(token_id: int, violation: Violation, rules: Abuse, *, now: int) -> Enforcement:
    """Revoke the token, with an event and its reason; suspend its account where it was one too many."""
    owner = Token.select(Token.user).where(Token.id == token_id)
    # One violation on an account at a time, so that each counts those before it.
    lock_rows(User.select(User.id).where(User.id.in_(owner))).first()
    status = token_statuses([token_id]).get(token_id)
    if status is None or status.revoked_at is not None or status.reset_at >= violation.at:
        return Enforcement(revoked=False, suspended=False)
    tokens.revoke(token_id, violation.reason, now=now, actor="abuse")
    revoked = _revoked_for_abuse(status.account_id)
    user = users.get(status.account_id)
    if not rules.terminate_after or revoked < rules.terminate_after or user.suspended_at is not None:
        return Enforcement(revoked=True, suspended=False)
    many = "1 token was" if revoked == 1 else f"{revoked} tokens were"
    users.suspend(user, now=now, reason=f"abuse: {many} revoked for abuse", actor="abuse")
    return Enforcement(revoked=True, suspended=True)


def _revoked_for_abuse(account_id: int) -> int:
    """How many tokens of the account are revoked for abuse, those not counted that were reinstated."""
    same = (SecurityEvent.token_id == Token.id) & (SecurityEvent.at == Token.revoked_at)
    by_abuse = SecurityEvent.kind == "token.revoked", SecurityEvent.actor == "abuse"
    query = Token.select(Token.id).join(SecurityEvent, on=same).where(Token.user == account_id, *by_abuse)
    return int(query.distinct().count())


class RefusalCounts(NamedTuple):
    """How many refusals and denials there were, whatever came between: none is judged below the thresholds."""

    refused: int = 0
    denied: int = 0

    def suspicious(self, rules: Abuse) -> bool:
        """Whether it is worth a look."""
        return self.refused >= rules.refusals or self.denied >= rules.probes


def refusal_counts(token_ids: Collection[int] | None, since: int) -> dict[int, RefusalCounts]:
    """How many refusals and denials of these tokens, or of all, the log holds since then; on the log's store."""
    counts = [
        fn.COALESCE(fn.SUM(condition.cast("integer")), 0)
        for condition in (Activity.status == REFUSED, Activity.status.in_(DENIED) & Activity.private)
    ]
    mine = Activity.token_id.in_(list(token_ids)) if token_ids is not None else Activity.token_id.is_null(is_null=False)
    # Said with the number as it stands, so that the index of refused calls is known to do.
    refused = SQL(f"status >= {FIRST_FAILURE}"), Activity.at >= since, Activity.judged
    rows = Activity.select(Activity.token_id, *counts).where(mine, *refused).group_by(Activity.token_id).tuples()
    return {token_id: RefusalCounts(int(refused), int(denied)) for token_id, refused, denied in rows.iterator()}
