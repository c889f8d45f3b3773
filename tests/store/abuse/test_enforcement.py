"""Enforcement of the abuse rules against tokens and accounts, and those that are gone or reset meanwhile."""

from functools import partial

import pytest

from musicsvc.config import Abuse
from musicsvc.store.abuse import enforcement
from musicsvc.store.abuse.enforcement import Enforcement, RefusalCounts
from musicsvc.store.abuse.rules import Violation
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import SecurityEvent, Token

NOTHING = Enforcement(revoked=False, suspended=False)
REVOKED = Enforcement(revoked=True, suspended=False)
SUSPENDED = Enforcement(revoked=True, suspended=True)


@pytest.fixture
def account(store: Store) -> int:
    """The id of an account with the tokens 1 to 4, beside another account with token 5."""

    def unit() -> int:
        ada, bob = (users.create(f"{name}@example.test", api_access=True, now=1) for name in ("ada", "bob"))
        for number, user in enumerate((ada, ada, ada, ada, bob), 1):
            tokens.create(user, f"token {number}", now=2)
        return ada.id

    return store.write(unit).result()


def enforce(store: Store, token_id: int, *, at: int = 50, after: int = 3) -> Enforcement:
    violation = Violation("excessive", at - 10, at, f"abuse: reason {token_id}")
    rules = Abuse(terminate_after=after)
    return store.write(lambda: enforcement.enforce(token_id, violation, rules, now=at + 1)).result()


def events(store: Store) -> list[tuple[object, ...]]:
    """Return the security events by the abuse rules: kind, account, token, reason and time."""

    def read() -> list[tuple[object, ...]]:
        names = SecurityEvent.kind, SecurityEvent.account_id, SecurityEvent.token_id, SecurityEvent.reason
        query = SecurityEvent.select(*names, SecurityEvent.at).where(SecurityEvent.actor == "abuse")
        return list(query.order_by(SecurityEvent.id).tuples().iterator())

    return store.read(read).result()


def test_an_account_is_suspended_when_enough_of_its_tokens_are_revoked_and_only_once(
    store: Store, account: int
) -> None:
    assert [enforce(store, token, at=40 + token) for token in (5, 1, 2, 3, 4)] == [
        *(REVOKED, REVOKED, REVOKED),
        SUSPENDED,
        REVOKED,
    ]
    bob = account + 1
    assert events(store) == [
        ("token.revoked", bob, 5, "abuse: reason 5", 46),
        ("token.revoked", account, 1, "abuse: reason 1", 42),
        ("token.revoked", account, 2, "abuse: reason 2", 43),
        ("token.revoked", account, 3, "abuse: reason 3", 44),
        ("account.suspended", account, None, "abuse: 3 tokens were revoked for abuse", 44),
        ("token.revoked", account, 4, "abuse: reason 4", 45),
    ]


@pytest.mark.usefixtures("account")
def test_one_revocation_suspends_where_that_is_set_and_none_where_it_is_not(store: Store) -> None:
    assert enforce(store, 1, after=0) == REVOKED
    assert enforce(store, 5, after=1) == SUSPENDED
    assert events(store)[-1][3] == "abuse: 1 token was revoked for abuse"


@pytest.mark.usefixtures("account")
def test_only_tokens_that_are_revoked_for_abuse_by_now_count(store: Store) -> None:
    store.write(lambda: tokens.revoke(1, "lost", now=30)).result()
    assert enforce(store, 2, at=40) == REVOKED
    store.write(lambda: tokens.reinstate(2, now=45)).result()
    assert enforce(store, 3, after=2) == REVOKED
    assert enforce(store, 4, after=2) == SUSPENDED


@pytest.mark.usefixtures("account")
def test_a_token_that_was_deleted_revoked_or_reset_since_the_violation_stays_as_it_is(store: Store) -> None:
    store.write(lambda: Token.delete().where(Token.id == 1).execute()).result()
    assert enforce(store, 1) == NOTHING
    store.write(lambda: tokens.revoke(2, "lost", now=30)).result()
    assert enforce(store, 2) == NOTHING
    for token, reset in ((3, 50), (4, 49)):
        store.write(partial(tokens.revoke, token, "abuse: old", now=20)).result()
        store.write(partial(tokens.reinstate, token, now=reset)).result()
    assert enforce(store, 3, at=50) == NOTHING
    assert events(store) == []
    assert enforce(store, 4, at=50) == REVOKED


def test_the_rules_are_evaluated_from_their_thresholds_on() -> None:
    rules = Abuse(refusals=7, probes=5)
    found = [RefusalCounts(refused, denied).suspicious(rules) for refused, denied in ((0, 0), (6, 4), (7, 0), (0, 5))]
    assert found == [False, False, True, True]
    assert RefusalCounts() == (0, 0)
    windows = [Abuse(refusal_seconds=300, probe_seconds=600), Abuse(refusal_seconds=900, probe_seconds=600)]
    assert [enforcement.window(each) for each in windows] == [1_200_000_000, 1_800_000_000]
