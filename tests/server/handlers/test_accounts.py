"""Registration: one account for each mailbox, however its address is spelled (docs/configure.md, E-mail addresses)."""

import pytest

from musicsvc.clock import MovableClock
from musicsvc.config import Registration, Settings
from musicsvc.store.accounts import passwords, users
from musicsvc.store.engine.store import Store
from tests.support.serving import Client, running

PASSWORD = "three romances for violin"
LONGEST = "x" * 64 + "@" + ".".join(["y" * 61] * 3) + ".test"


async def _register(client: Client, email: str, password: str = PASSWORD) -> tuple[int, dict[str, str]]:
    answer = await client.post("auth/register", {"email": email, "password": password})
    assert email not in answer.body.decode()
    return answer.status, answer.json.get("errors", {})


@pytest.mark.slow
async def test_every_domain_with_a_dot_registers_and_a_mailbox_only_once(anonymous: Client, store: Store) -> None:
    domains = ("a.test", "a.invalid", "a.local", "a.internal", "a.localhost", "a.onion", "a.arpa", "localhost")
    valid = [*(f"u@{domain}" for domain in domains), "eva@exämple.test", "zoë@label.test", "u@straße.test", LONGEST]
    assert [await _register(anonymous, email) for email in valid] == [(200, {})] * len(valid)
    for again in (
        "U@A.Test",
        "ｕ@ａ．ｌｏｃａｌ",
        "Eva@xn--exmple-cua.TEST",
        "ZOE\u0308@label.test",
        f" {LONGEST.upper()} ",
    ):
        assert await _register(anonymous, again) == (422, {"email": users.TAKEN})
    assert await _register(anonymous, "u@strasse.test") == (200, {})
    for wrong in ("u@test", "u@127.0.0.1", "x" * 65 + "@label.test", LONGEST + "t", "u；v@label.test"):
        status, errors = await _register(anonymous, wrong)
        assert (status, list(errors)) == (422, ["email"])
    assert len(store.read(users.list).result()) == len(valid) + 1
    assert {user.email for user in store.read(users.list).result()} == {*valid, "u@strasse.test"}


async def test_nobody_registers_where_registration_is_closed(store: Store, clock: MovableClock) -> None:
    async with running(store, clock, Settings(registration=Registration(open=False))) as anonymous:
        answer = await anonymous.post("auth/register", {"email": "eva@label.test", "password": PASSWORD})
    assert (answer.status, answer.json["message"]) == (403, "Registration is closed.")
    assert not store.read(users.list).result()


async def test_the_password_is_kept_as_it_was_sent(anonymous: Client, store: Store) -> None:
    assert await _register(anonymous, "eva@label.test") == (200, {})
    kept = store.read(lambda: users.by_email("eva@label.test").password_hash).result()
    assert passwords.verify(str(kept), PASSWORD)


async def test_a_password_is_not_the_email_in_any_spelling(anonymous: Client) -> None:
    status, errors = await _register(anonymous, "eva@exämple.test", "ＥＶＡ@xn--exmple-cua.test")
    assert (status, errors) == (422, {"password": "The password must not be the e-mail."})
