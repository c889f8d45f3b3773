"""Enforcement actions, newest first, with those that were undone."""

from musicsvc.store.abuse import enforcement
from musicsvc.store.accounts import tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token


def test_actions_tell_which_were_undone(store: Store) -> None:
    def unit() -> None:
        ada, bob = (users.create(f"{name}@example.test", api_access=True, now=1) for name in ("ada", "bob"))
        for number in range(4):
            tokens.create(bob, f"token {number}", now=2)
        for token_id in (1, 2, 3):
            tokens.revoke(token_id, f"abuse: reason {token_id}", now=10 + token_id, actor="abuse")
        tokens.revoke(4, "lost", now=14)
        users.suspend(bob, reason="abuse: three", now=15, actor="abuse")
        tokens.reinstate(2, now=16)
        tokens.reinstate(3, now=17)
        tokens.revoke(3, "lost", now=18)
        users.suspend(ada, reason="abuse: mistaken", now=19, actor="abuse")
        users.reinstate(ada, now=20)
        Token.delete().where(Token.id == 1).execute()

    store.write(unit).result()
    found = store.read(lambda: enforcement.newest_actions(limit=9)).result()
    assert [(each.at, each.kind, each.email, each.token_name, each.reason, each.in_force) for each in found] == [
        (19, "account.suspended", "ada@example.test", None, "abuse: mistaken", False),
        (15, "account.suspended", "bob@example.test", None, "abuse: three", True),
        (13, "token.revoked", "bob@example.test", "token 2", "abuse: reason 3", False),
        (12, "token.revoked", "bob@example.test", "token 1", "abuse: reason 2", False),
        (11, "token.revoked", "bob@example.test", None, "abuse: reason 1", False),
    ]
    store.write(lambda: users.reinstate(users.get(2), now=21)).result()
    older = store.read(lambda: enforcement.newest_actions(limit=2, before=found[0].id)).result()
    assert [(each.at, each.in_force) for each in older] == [(15, False), (13, False)]
    store.write(lambda: tokens.revoke(2, "abuse: again", now=22, actor="abuse")).result()
    assert [each.in_force for each in store.read(lambda: enforcement.newest_actions(limit=9)).result()] == [
        True,
        *[False] * 5,
    ]
