"""Security events: one for each action, in its transaction; none for an action without effect."""

from collections.abc import Callable
from typing import get_args

import pytest

from musicsvc.errors import Conflict, Failure
from musicsvc.store.accounts import api_access, password_links, tokens, users
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, SecurityEvent
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Event, Filter, Kind
from musicsvc.store.seeding import fixtures

EMAIL = "ada@example.test"
# Kinds of events that other tests show.
ELSEWHERE = (
    {"activity.lost", "report.shared", "report.unshared", "db.restored", "listener.erased", "request.sent"}
    | {"account.edited", "account.deleted", "admin.granted", "admin.revoked"}
    | {f"import.{kind}" for kind in ("started", "done", "stopped", "undo_started", "undone")}
    | {f"{noun}.{act}" for noun in ("artist", "album", "track") for act in ("deleted", "merged")}
    | {"album.uncredited", "track.uncredited", "artist.split"}
    | {"artist.offered", "artist.offer_refused", "artist.offer_withdrawn"}
    | {f"plays.{kind}" for kind in ("withdrawal_started", "withdrawn", "pruned")}
)


@pytest.fixture
def token_id(store: Store) -> int:
    """Ada's token, without the events of its creation."""

    def unit() -> int:
        user = users.create(EMAIL, api_access=True, now=1)
        made, _ = tokens.create(user, "laptop", now=1)
        SecurityEvent.delete().execute()
        return made.id

    return store.write(unit).result()


def told(store: Store) -> list[Event]:
    return store.read(lambda: security_events.find(limit=100)).result()


def act(store: Store, unit: Callable[[], object]) -> None:
    store.write(lambda: unit() and None).result()


ACTS: list[tuple[str, str | None, Callable[[int], object]]] = [
    ("token.created", None, lambda _: tokens.create(users.get(1), "phone", now=7, actor="api")),
    ("token.regenerated", None, lambda token: tokens.regenerate(token, now=7, actor="api")),
    ("token.revoked", "leaked", lambda token: tokens.revoke(token, "leaked", now=7, actor="api")),
    ("account.suspended", "scraping", lambda _: users.suspend(users.get(1), reason="scraping", now=7, actor="api")),
    ("password.set", None, lambda _: users.set_password(users.get(1), "$argon2id$made-up", now=7, actor="api")),
    ("access.revoked", None, lambda _: api_access.revoke(users.get(1), now=7, actor="api")),
    (
        "access.granted",
        "with plays of other listeners",
        lambda _: api_access.grant(users.get(1), plays=True, now=7, actor="api"),
    ),
]


@pytest.mark.parametrize(("kind", "reason", "unit"), ACTS, ids=[kind for kind, *_ in ACTS])
def test_an_action_adds_its_event_unless_it_is_rolled_back(
    store: Store, token_id: int, kind: str, reason: str | None, unit: Callable[[int], object]
) -> None:
    def undone() -> None:
        unit(token_id)
        raise Failure("undone")

    with pytest.raises(Failure, match="undone"):
        act(store, undone)
    assert told(store) == []

    act(store, lambda: unit(token_id))

    (event,) = told(store)
    newest = store.read(lambda: tokens.list()[-1].id).result()  # the id of the one rolled back is used up on PostgreSQL
    about = None if not kind.startswith("token.") else newest if kind == "token.created" else token_id
    assert event == Event(7, kind, 1, about, "api", reason)


def test_the_default_actor_is_the_command_line(store: Store, token_id: int) -> None:
    def unit() -> None:
        user = users.create("eve@example.test", now=2)
        password_links.create(user, now=2)
        users.set_password(user, "$argon2id$made-up", now=2)
        users.suspend(user, now=2)
        users.reinstate(user, now=2)
        api_access.grant(user, now=2)
        api_access.revoke(user, now=2)
        tokens.revoke(token_id, "leaked", now=2)
        tokens.reinstate(token_id, now=2)
        tokens.regenerate(token_id, now=2)
        tokens.create(users.get(1), "phone", now=2)
        for email in ("ivo@example.test", "uma@example.test"):
            api_access.request(email, "to see it work", "small", "Label", now=2)
        api_access.approve("ivo@example.test", now=2)
        api_access.deny("uma@example.test", "no reason", now=2)
        assignments.assign(Artist.create(name="Ann", manager=1, created_at=1).id, user, now=2)
        artists.verify(1, now=2)
        artists.verify(1, verified=False, now=2)

    act(store, unit)

    found = told(store)
    assert {event.kind for event in found} | ELSEWHERE == set(get_args(Kind))
    assert {event.actor for event in found} == {"cli"}


def test_undoing_adds_an_event_and_repeating_does_not(store: Store, token_id: int) -> None:
    for _ in range(2):
        act(store, lambda: tokens.revoke(token_id, "leaked", now=2))
        act(store, lambda: users.suspend(users.get(1), now=3))
        act(store, lambda: api_access.revoke(users.get(1), now=4))
    for _ in range(2):
        act(store, lambda: api_access.grant(users.get(1), now=5))
        act(store, lambda: users.reinstate(users.get(1), now=6))
        act(store, lambda: tokens.reinstate(token_id, now=7))

    assert told(store) == [
        Event(2, "token.revoked", 1, token_id, "cli", "leaked"),
        Event(3, "account.suspended", 1, None, "cli", None),
        Event(4, "access.revoked", 1, None, "cli", None),
        Event(5, "access.granted", 1, None, "cli", None),
        Event(6, "account.reinstated", 1, None, "cli", None),
        Event(7, "token.reinstated", 1, token_id, "cli", None),
    ]


def test_a_request_adds_an_event_for_each_step(store: Store) -> None:
    act(store, lambda: api_access.request(EMAIL, "A player", "100 a day", "Engines Ltd", now=1))
    act(store, lambda: api_access.deny(EMAIL, "too vague", now=2))
    act(store, lambda: api_access.request(EMAIL, "A player", "100 a day", "Engines Ltd", now=3))
    with pytest.raises(Conflict):
        act(store, lambda: api_access.request(EMAIL, "A player", "100 a day", "Engines Ltd", now=4))
    act(store, lambda: api_access.approve(EMAIL, now=5))

    assert [event[:3] + event[4:6] for event in told(store)] == [
        (1, "access.requested", None, "cli", "request 1"),
        (2, "access.denied", None, "cli", "request 1: too vague"),
        (3, "access.requested", None, "cli", "request 2"),
        (5, "account.created", 1, "cli", None),
        (5, "password.link_created", 1, "cli", None),
        (5, "access.approved", 1, "cli", "request 2"),
        (5, "access.granted", 1, "cli", None),
    ]


def test_the_event_marks_an_administrator(store: Store) -> None:
    act(store, lambda: users.create(EMAIL, admin=True, api_access=True, now=1))

    assert [(event.kind, event.reason) for event in told(store)] == [
        ("account.created", "administrator"),
        ("access.granted", None),
    ]


def test_the_events_of_an_account_a_token_and_a_time_are_found(store: Store, token_id: int) -> None:
    act(store, lambda: users.create("bob@example.test", now=2))
    act(store, lambda: tokens.regenerate(token_id, now=3))
    act(store, lambda: users.suspend(users.get(1), now=4))

    def kinds(limit: int = 9, **wanted: int) -> list[str]:
        return [
            event.kind for event in store.read(lambda: security_events.find(Filter(**wanted), limit=limit)).result()
        ]

    assert kinds() == ["account.created", "token.regenerated", "account.suspended"]
    assert kinds(limit=1) == ["account.suspended"]
    assert kinds(account_id=1) == ["token.regenerated", "account.suspended"]
    assert kinds(token_id=token_id) == ["token.regenerated"]
    assert kinds(since=3, until=4) == ["token.regenerated"]
    last = store.read(security_events.last_id).result()
    assert [event.at for _, event in store.read(lambda: security_events.written_after(last - 2)).result()] == [3, 4]


def test_events_of_the_fixtures_have_their_own_actor(store: Store) -> None:
    act(store, lambda: fixtures.load(now=10**15))

    made = told(store)
    assert {event.actor for event in made} == {"fixtures"}
    assert (
        {"token.created", "token.revoked", "account.suspended"} <= {event.kind for event in made} <= set(get_args(Kind))
    )
