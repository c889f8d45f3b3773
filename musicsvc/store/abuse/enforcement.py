"""Enforcement of the abuse rules: revoke the token, and suspend its account after several revocations."""

from collections.abc import Collection
from typing import Any, NamedTuple

from peewee import SQL, Case, fn

from musicsvc.clock import SECOND
from musicsvc.config import Abuse
from musicsvc.store.abuse.probing_rule import DENIED, FIRST_FAILURE
from musicsvc.store.abuse.rate_limit_rule import REFUSED
from musicsvc.store.abuse.rules import Violation
from musicsvc.store.accounts import tokens, users
from musicsvc.store.activity.calls import Entry
from musicsvc.store.engine.sql import lock_rows
from musicsvc.store.models import Activity, SecurityEvent, Token, User
from musicsvc.wording import quantity

RESETS = ("token.reinstated", "token.regenerated")
WINDOWS = 2  # evaluations read the calls of two windows, to see a series of refusals from its beginning


class TokenStatus(NamedTuple):
    """A token whose calls the rules evaluate. `reset_at` is its last reinstatement or regeneration, or 0.

    Rules ignore calls before the token's creation or last reset. They also ignore calls of other accounts, because a
    restored database can give the id of an earlier token to a new one.
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
        return max(self.created_at, self.reset_at + 1)

    def counts(self, entry: Entry) -> bool:
        """Return True if the token's account made the call, after the token's creation and last reset."""
        return entry.account_id == self.account_id and entry.at >= self.since


class Enforcement(NamedTuple):
    """The results of `enforce`: whether it revoked the token, and whether it suspended the token's account."""

    revoked: bool
    suspended: bool


def window(rules: Abuse) -> int:
    """Return the length, in microseconds, of the period whose calls the abuse rules evaluate."""
    return WINDOWS * max(rules.refusal_seconds, rules.probe_seconds) * SECOND


def token_statuses(token_ids: Collection[int]) -> dict[int, TokenStatus]:
    """Return the status of each token, by token id. Ids of tokens that do not exist are absent."""
    wanted = list(token_ids)
    columns = (Token.id, User.id, User.email, Token.created_at, Token.revoked_at, Token.revoked_reason)
    found = Token.select(*columns).join(User).where(Token.id.in_(wanted)).tuples()
    resets = dict(_resets(wanted))
    return {row[0]: TokenStatus._make((*row, resets.get(row[0], 0))) for row in found.iterator()}


def _resets(token_ids: Collection[int]) -> Any:
    """Return rows of (token id, time of its last reinstatement or regeneration). Other tokens are absent."""
    mine = SecurityEvent.token_id.in_(list(token_ids)), SecurityEvent.kind.in_(RESETS)
    query = SecurityEvent.select(SecurityEvent.token_id, fn.MAX(SecurityEvent.at)).where(*mine)
    return query.group_by(SecurityEvent.token_id).tuples().iterator()


def enforce(token_id: int, violation: Violation, rules: Abuse, *, now: int) -> Enforcement:
    """Revoke the token, unless it was revoked or reset after the violation.

    Suspend its account if at least `rules.terminate_after` of the account's tokens are now revoked for abuse.
    """
    owner = Token.select(Token.user).where(Token.id == token_id)
    # The lock makes enforcements for one account run one after another, so that each sees the earlier revocations.
    lock_rows(User.select(User.id).where(User.id.in_(owner))).first()
    status = token_statuses([token_id]).get(token_id)
    if status is None or status.revoked_at is not None or status.reset_at >= violation.at:
        return Enforcement(revoked=False, suspended=False)
    tokens.revoke(token_id, violation.reason, now=now, actor="abuse")
    revoked = _revoked_for_abuse(status.account_id)
    user = users.get(status.account_id)
    if not rules.terminate_after or revoked < rules.terminate_after or user.suspended_at is not None:
        return Enforcement(revoked=True, suspended=False)
    were = "was" if revoked == 1 else "were"
    reason = f"abuse: {quantity(revoked, 'token')} {were} revoked for abuse"
    users.suspend(user, now=now, reason=reason, actor="abuse")
    return Enforcement(revoked=True, suspended=True)


def _revoked_for_abuse(account_id: int) -> int:
    same = (SecurityEvent.token_id == Token.id) & (SecurityEvent.at == Token.revoked_at)
    by_abuse = SecurityEvent.kind == "token.revoked", SecurityEvent.actor == "abuse"
    query = Token.select(Token.id).join(SecurityEvent, on=same).where(Token.user == account_id, *by_abuse)
    return int(query.distinct().count())


class RefusalCounts(NamedTuple):
    """A token's numbers of rate-limited calls (429) and of denied calls to resources that can be private (403, 404)."""

    refused: int = 0
    denied: int = 0

    def suspicious(self, rules: Abuse) -> bool:
        """Return True if these numbers are large enough to violate a rule, so that the rules must be evaluated."""
        return self.refused >= rules.refusals or self.denied >= rules.probes


def refusal_counts(token_ids: Collection[int] | None, since: int) -> dict[int, RefusalCounts]:
    """Count refused calls since a time (microseconds) by token id. None means all tokens. Call in a log transaction."""
    counts = [
        fn.SUM(condition.cast("integer"))
        for condition in (Activity.status == REFUSED, Activity.status.in_(DENIED) & Activity.private)
    ]
    mine = Activity.token_id.in_(list(token_ids)) if token_ids is not None else Activity.token_id.is_null(is_null=False)
    # The number is part of the SQL, so that the planner recognizes the partial index of failed calls.
    refused = SQL(f"status >= {FIRST_FAILURE}"), Activity.at >= since, Activity.limits_apply
    rows = Activity.select(Activity.token_id, *counts).where(mine, *refused).group_by(Activity.token_id).tuples()
    return {token_id: RefusalCounts(int(refused), int(denied)) for token_id, refused, denied in rows.iterator()}


BEYOND_ALL = 2**63 - 1


class EnforcementAction(NamedTuple):
    """A revocation of a token, or the suspension of an account if `token_id` is None. `in_force`: not undone since."""

    id: int  # of the security event
    at: int
    kind: str
    account_id: int
    email: str | None
    token_id: int | None
    token_name: str | None
    last_four: str | None
    reason: str | None
    actor: str
    in_force: bool


def newest_actions(*, limit: int, before: int | None = None) -> list[EnforcementAction]:
    """Return the newest `limit` actions whose ids are below `before`, newest first."""
    event = SecurityEvent
    done_at = Case(event.kind, [("token.revoked", Token.revoked_at)], User.suspended_at)
    about = event.account_id, User.email, event.token_id, Token.name, Token.last_four
    rows = (
        event.select(event.id, event.at, event.kind, *about, event.reason, event.actor, done_at)
        .join(User, "LEFT JOIN", on=(User.id == event.account_id))
        .join(Token, "LEFT JOIN", on=(Token.id == event.token_id))
        .where(event.actor == "abuse", event.id < (BEYOND_ALL if before is None else before))
        .order_by(event.id.desc())
        .limit(limit)
    )
    return [EnforcementAction._make((*row[:10], row[10] == row[1])) for row in rows.tuples().iterator()]
