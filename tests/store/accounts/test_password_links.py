"""Links to set a password: one for each account, used once, within 24 hours."""

from typing import Any

import pytest

from musicsvc.clock import DAY, MovableClock
from musicsvc.errors import Conflict, NotFound
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.engine.store import Store
from musicsvc.store.models import PasswordLink
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Administrator


@pytest.fixture
def people(store: Store) -> tuple[int, int]:
    """Two accounts: Ada, and Bob, who also has a link."""

    def unit() -> tuple[int, int]:
        ada, bob = (users.create(f"{name}@example.test", now=1) for name in ("ada", "bob"))
        password_links.create(bob, now=1)
        return ada.id, bob.id

    return store.write(unit).result()


def create(store: Store, user_id: int, now: int) -> password_links.NewLink:
    return store.write(lambda: password_links.create(users.get(user_id), now=now)).result()


def account_of(store: Store, secret: str, now: int) -> int | None:
    try:
        return store.read(lambda: password_links.find(secret, now=now).id).result()
    except NotFound:
        return None


def test_a_link_leads_to_its_account_for_24_hours(store: Store, clock: MovableClock, people: tuple[int, int]) -> None:
    link = create(store, people[0], clock.now())
    assert link.url("https://music.test") == f"https://music.test/password/{link.secret}"
    assert link.expires_at == clock.now() + DAY
    assert account_of(store, link.secret, link.expires_at - 1) == people[0]
    assert account_of(store, link.secret, link.expires_at) is None
    assert account_of(store, f"{link.secret}x", clock.now()) is None
    assert account_of(store, "", clock.now()) is None


def test_a_link_sets_one_password(store: Store, clock: MovableClock, people: tuple[int, int]) -> None:
    link = create(store, people[0], clock.now())
    futures = [
        store.write(lambda number=number: password_links.use(link.secret, f"hash {number}", now=clock.now()))  # type: ignore[misc]  # bound in the loop
        for number in range(5)
    ]
    (used,) = [future.result() for future in futures if future.exception() is None]
    assert used.password_hash == store.read(lambda: users.get(people[0]).password_hash).result()
    assert {type(future.exception()) for future in futures} == {type(None), NotFound}
    assert account_of(store, link.secret, clock.now()) is None
    events = store.read(lambda: security_events.find(limit=2)).result()
    assert [(event.kind, event.account_id, event.actor) for event in events] == [
        ("password.link_created", people[0], "cli"),
        ("password.set", people[0], "page"),
    ]


def test_an_expired_link_sets_no_password(store: Store, clock: MovableClock, people: tuple[int, int]) -> None:
    link = create(store, people[0], clock.now())
    with pytest.raises(NotFound, match="not valid any more"):
        store.write(lambda: password_links.use(link.secret, "hash", now=clock.now() + DAY)).result()
    assert store.read(lambda: users.get(people[0]).password_hash).result() is None


def test_a_link_is_ended_by_the_next_one_and_by_a_password(
    store: Store, clock: MovableClock, people: tuple[int, int]
) -> None:
    first, second = (create(store, people[0], clock.now() + each) for each in range(2))
    other = create(store, people[1], clock.now())
    assert account_of(store, first.secret, clock.now()) is None
    assert account_of(store, second.secret, first.expires_at) == people[0]
    store.write(lambda: users.set_password(users.get(people[0]), "hash", now=clock.now())).result()
    assert account_of(store, second.secret, clock.now()) is None
    assert account_of(store, other.secret, clock.now()) == people[1]


@pytest.mark.parametrize("granted", [None, 5])
def test_a_link_revokes_the_tokens_made_before_the_first_access(store: Store, granted: int | None) -> None:
    def make(email: str, at: int, days: int = 90) -> int:
        user = users.by_email(email)
        return tokens.create(user, f"token {at}", days=days, now=at, without_access=True)[0].id

    def unit() -> tuple[dict[int, str | None], list[int | None]]:
        for email in ("ada@example.test", "ben@example.test"):
            users.create(email, now=1)
        made = [make("ada@example.test", at) for at in (1, 2, 4)]
        expired = make("ada@example.test", 4, days=1)
        others = make("ben@example.test", 3)
        tokens.revoke(made[1], "lost", now=3)
        if granted is not None:
            ada = users.by_email("ada@example.test")
            revived = api_access.grant(ada, now=granted)
            assert [token.id for token in revived] == [made[0], made[2], expired]
            assert api_access.grant(ada, plays=True, now=6) == ()  # it has access already
            made.append(make("ada@example.test", 5))
            api_access.revoke(ada, now=7)
            made.append(make("ada@example.test", 8))
            tokens.regenerate(made[2], now=8)  # with a new value it is still a token of before
            assert len(api_access.grant(ada, now=5 + 2 * DAY)) == 4  # one has expired
        now = 9 + 2 * DAY
        for _ in range(2):
            link = password_links.create(users.by_email("ada@example.test"), now=now)
            password_links.use(link.secret, "hash", now=now)
        events = security_events.find(security_events.Filter(since=now), limit=19)
        found = {each: tokens.get(each).revoked_reason for each in (*made, expired, others)}
        return found, [event.token_id for event in events if event.kind == "token.revoked"]

    reasons, events = store.write(unit).result()
    why = "created before the account had API access; then a password was set by a one-time link"
    kept = [] if granted is None else [None, None]
    assert list(reasons.values()) == [why, f"lost; {why}", why, *kept, why, None]
    assert events == [each for each, reason in reasons.items() if reason is not None]


def test_a_suspended_account_gets_and_uses_no_link(store: Store, clock: MovableClock, people: tuple[int, int]) -> None:
    link = create(store, people[0], clock.now())
    store.write(lambda: users.suspend(users.get(people[0]), now=clock.now())).result()
    assert account_of(store, link.secret, clock.now()) is None
    with pytest.raises(Conflict, match=r"ada@example\.test is suspended"):
        create(store, people[0], clock.now())


def test_the_secret_is_random_and_not_stored(store: Store, clock: MovableClock, people: tuple[int, int]) -> None:
    secrets = {create(store, people[0], clock.now()).secret for _ in range(20)}
    last = create(store, people[0], clock.now()).secret
    assert len(secrets | {last}) == 21
    assert {len(secret) for secret in secrets} == {43}  # 256 bits
    rows: Any = store.read(lambda: list(PasswordLink.select().dicts())).result()
    assert sorted(row["user"] for row in rows) == sorted(people)
    assert last not in str(rows)


def test_the_event_names_the_administrator(store: Store, clock: MovableClock, people: tuple[int, int]) -> None:
    ada, bob = people
    store.write(lambda: password_links.create(users.get(bob), now=clock.now(), actor=Administrator(ada))).result()
    (event,) = store.read(lambda: security_events.find(limit=1)).result()
    assert (event.kind, event.account_id, event.actor, event.actor_id) == ("password.link_created", bob, "admin", ada)
