"""Tokens: format, lifetime of 90 days, revocation."""

import string
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.clock import DAY, SECOND, MovableClock
from musicsvc.errors import Forbidden, Invalid, NotFound
from musicsvc.store.accounts import api_access, tokens, users
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Token, User

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


@pytest.fixture
def ada(store: Store, clock: MovableClock) -> User:
    def unit() -> User:
        user = users.create("ada@example.test", display_name="Ada", now=clock.now())
        api_access.grant(user, now=1)
        return user

    return store.write(unit).result()


@pytest.fixture
def made(store: Store, clock: MovableClock, ada: User) -> tuple[Token, str]:
    return store.write(lambda: tokens.create(ada, "laptop", now=clock.now())).result()


def identify(store: Store, value: str) -> Identity | None:
    return store.read(lambda: tokens.identify(tokens.digest(value))).result()


def state(store: Store, token: Token, now: int) -> str:
    return store.read(lambda: tokens.state(tokens.get(token.id), now)).result()


def test_a_value_is_a_prefix_40_random_characters_and_6_of_the_crc() -> None:
    values = {tokens.generate() for _ in range(200)}
    assert len(values) == 200
    for value in values:
        assert value.startswith("msvc_")
        assert len(value) == 51
        assert set(value[5:]) <= set(BASE62)
        number = 0
        for sign in value[-6:]:
            number = number * 62 + BASE62.index(sign)
        assert number == zlib.crc32(value[:-6].encode())
        assert tokens.well_formed(value)


@given(st.integers(0, 50), st.characters())
def test_one_changed_character_makes_a_value_malformed(place: int, sign: str) -> None:
    value = tokens.generate()
    changed = value[:place] + sign + value[place + 1 :]
    assert tokens.well_formed(changed) == (changed == value)


@given(st.text())
def test_other_text_is_malformed(text: str) -> None:
    assert not tokens.well_formed(text)
    assert not tokens.well_formed("msvc_" + text)
    assert not tokens.well_formed(tokens.generate() + (text or "\n"))


def test_one_digest_identifies_the_caller_completely(
    store: Store, clock: MovableClock, ada: User, made: tuple[Token, str]
) -> None:
    token, value = made
    assert identify(store, value) == Identity(
        user_id=ada.id,
        display_name="Ada",
        avatar=None,
        admin=False,
        api_access=True,
        reports_plays=False,
        suspended=False,
        token_id=token.id,
        token_name="laptop",
        expires_at=clock.now() + 7_776_000 * SECOND,
    )
    assert identify(store, tokens.generate()) is None


def test_a_token_has_the_lifetime_and_scope_that_were_asked_for(store: Store, clock: MovableClock, ada: User) -> None:
    token, value = store.write(lambda: tokens.create(ada, "phone", days=3, scope="read", now=clock.now())).result()
    found = identify(store, value)
    assert found is not None
    assert (found.expires_at, found.scope) == (clock.now() + 3 * DAY, "read")
    clock.advance(3 * DAY - 1)
    assert state(store, token, clock.now()) == "valid"
    clock.advance(1)
    assert state(store, token, clock.now()) == "expired"
    _, renewed = store.write(lambda: tokens.regenerate(token.id, now=clock.now())).result()
    found = identify(store, renewed)
    assert found is not None
    assert (found.expires_at, found.scope) == (clock.now() + 90 * DAY, "read")


@pytest.mark.parametrize(
    ("options", "faults"),
    [
        ({"days": 0}, ["days"]),
        ({"days": 91}, ["days"]),
        ({"scope": "write"}, ["scope"]),
        ({"days": 91, "scope": ""}, ["days", "scope"]),
    ],
)
def test_a_lifetime_is_1_to_90_days_and_a_scope_one_of_two(
    store: Store, clock: MovableClock, ada: User, options: dict[str, Any], faults: list[str]
) -> None:
    with pytest.raises(Invalid) as refusal:
        store.write(lambda: tokens.create(ada, "phone", **options, now=clock.now())).result()
    assert list(refusal.value.errors) == faults


def test_only_the_digest_of_a_value_is_stored(store: Store, made: tuple[Token, str]) -> None:
    row: Any = store.read(lambda: next(iter(Token.select().dicts()))).result()
    assert bytes(row["digest"]) == tokens.digest(made[1])
    assert row["last_four"] == made[1][-4:]
    assert made[1] not in str(row)
    assert made[1][5:45] not in str(row)


def test_an_account_without_access_or_suspended_gets_no_token(store: Store, clock: MovableClock, ada: User) -> None:
    store.write(lambda: api_access.revoke(users.get(ada.id), now=1)).result()
    with pytest.raises(Forbidden, match=r"The account has no API access\."):
        store.write(lambda: tokens.create(users.get(ada.id), "laptop", now=clock.now())).result()
    token, _ = store.write(
        lambda: tokens.create(users.get(ada.id), "register", now=clock.now(), without_access=True)
    ).result()
    assert token.name == "register"
    store.write(lambda: users.suspend(users.get(ada.id), now=1)).result()
    with pytest.raises(Forbidden, match=r"The account is suspended\."):
        store.write(lambda: tokens.create(users.get(ada.id), "laptop", now=clock.now(), without_access=True)).result()


@pytest.mark.parametrize("name", ["", "ab", "  ab  ", "x" * 51])
def test_a_name_has_3_to_50_characters(store: Store, clock: MovableClock, ada: User, name: str) -> None:
    with pytest.raises(Invalid) as refusal:
        store.write(lambda: tokens.create(ada, name, now=clock.now())).result()
    assert list(refusal.value.errors) == ["name"]


def test_a_revoked_token_keeps_its_first_reason(store: Store, made: tuple[Token, str]) -> None:
    token, value = made
    store.write(lambda: tokens.revoke(token.id, "lost", now=7)).result()
    again = store.write(lambda: tokens.revoke(token.id, "later", now=9)).result()
    assert (again.revoked_at, again.revoked_reason) == (7, "lost")
    found = identify(store, value)
    assert found is not None
    assert found.revoked is True
    assert state(store, token, 8) == "revoked"


def test_regeneration_gives_an_expired_token_a_new_value_for_90_days_and_ends_the_old(
    store: Store, clock: MovableClock, made: tuple[Token, str]
) -> None:
    token, old = made
    store.write(lambda: tokens.touch({token.id: clock.now()})).result()
    clock.advance(200 * DAY)
    renewed, new = store.write(lambda: tokens.regenerate(token.id, now=clock.now())).result()
    assert (renewed.id, renewed.name, renewed.last_used_at) == (token.id, "laptop", None)
    assert renewed.last_four == new[-4:]
    assert renewed.expires_at == clock.now() + 90 * DAY
    assert renewed.user.email == "ada@example.test"
    assert identify(store, old) is None
    assert identify(store, new) is not None


def test_an_unknown_token_is_not_found(store: Store) -> None:
    for unit in (
        lambda: tokens.get(99),
        lambda: tokens.reinstate(99, now=1),
        lambda: tokens.revoke(99, "lost", now=1),
        lambda: tokens.regenerate(99, now=1)[0],
    ):
        with pytest.raises(NotFound, match=r"There is no token 99\."):
            store.write(unit).result()


def test_last_uses_are_stored_in_a_batch_and_never_set_back(store: Store, ada: User, made: tuple[Token, str]) -> None:
    other, _ = store.write(lambda: tokens.create(ada, "phone", now=1)).result()
    store.write(lambda: tokens.touch({})).result()
    store.write(lambda: tokens.touch({other.id: 50, made[0].id: 40, 999: 1})).result()
    store.write(lambda: tokens.touch({other.id: 49, made[0].id: 41})).result()
    found = store.read(tokens.list).result()
    assert [(token.name, token.last_used_at) for token in found] == [("laptop", 41), ("phone", 50)]
