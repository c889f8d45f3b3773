"""The migration that adds normalized e-mails, on databases where accounts share a mailbox."""

import signal
from collections.abc import Callable
from functools import partial

import pytest

from musicsvc.errors import Conflict, Invalid
from musicsvc.store import opening
from musicsvc.store.accounts import api_access, email_addresses, users
from musicsvc.store.doctor import database
from musicsvc.store.doctor.finding import warning
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.people import accounts
from musicsvc.store.schema import schema
from tests.support import upgrades

NOW = 5_000
BEFORE, AFTER = "0008_collaborations", "0010_table_versions"
# As the version before would have written them; account 12 is the oldest of the mailbox, though not the first row.
ACCOUNTS = """
INSERT INTO account (id, email, email_key, display_name, created_at) VALUES
    (3, 'Ann@Label.test', 'ann@label.test', 'Ann', 900),
    (11, 'eva@xn--exmple-cua.test', 'eva@xn--exmple-cua.test', 'Eva by punycode', 300),
    (12, 'Eva@exämple.test', 'eva@exämple.test', 'Eva', 200),
    (13, 'ＥＶＡ@EXÄMPLE.test', 'ｅｖａ@exämple.test', 'Eva in full width', 400),
    (14, 'ａｎｎ@label.test', 'ａｎｎ@label.test', 'Ann in full width', 800),
    (15, 'max@straße.test', 'max@strasse.test', 'Max', 500)
"""
REQUESTS = """
INSERT INTO access_request (id, email, email_key, use_case, volume, organization, state, created_at) VALUES
    (1, 'eva@EXÄMPLE.test', 'eva@exämple.test', 'x', 'x', 'x', 'denied', 1),
    (2, 'eva@xn--exmple-cua.test', 'eva@xn--exmple-cua.test', 'x', 'x', 'x', 'pending', 2),
    (3, 'eva@exämple.test', 'eva@exämple.test', 'x', 'x', 'x', 'pending', 3),
    (4, 'ann@label.test', 'ann@label.test', 'x', 'x', 'x', 'pending', 4)
"""
KEYS = {
    3: None,
    11: None,
    12: "eva@xn--exmple-cua.test",
    13: None,
    14: "ann@label.test",
    15: "max@xn--strae-oqa.test",
}
REQUEST_KEYS = {1: "eva@xn--exmple-cua.test", 2: "eva@xn--exmple-cua.test", 3: None, 4: "ann@label.test"}


@pytest.fixture
def old_url(new_database: Callable[..., str]) -> str:
    url = new_database(migrated=False)
    upgrades.migrate_to(url, BEFORE, ACCOUNTS, REQUESTS)
    return url


def keys(store: Store) -> tuple[dict[int, str | None], dict[int, str | None]]:
    def unit() -> tuple[dict[int, str | None], dict[int, str | None]]:
        requests = {entry.request.id: entry.request.email_key for entry in api_access.list() if entry.request}
        return {user.id: user.email_key for user in users.list()}, requests

    return store.read(unit).result()


def found(store: Store, *emails: str) -> list[int]:
    return store.read(lambda: [users.by_email(email).id for email in emails]).result()


def test_the_oldest_account_of_a_mailbox_gets_the_key_and_nothing_is_merged(old_url: str) -> None:
    schema.upgrade(old_url)
    with opening.connect(old_url) as store:
        assert store.read(schema.problems).result() == []
        assert keys(store) == (KEYS, REQUEST_KEYS)
        people = {user.id: (user.email, user.display_name) for user in store.read(users.list).result()}
        assert len(people) == 6
        assert (people[11], people[12]) == (
            ("eva@xn--exmple-cua.test", "Eva by punycode"),
            ("Eva@exämple.test", "Eva"),
        )
        assert found(store, "eva@exämple.test", "EVA@XN--EXMPLE-CUA.test", "ann@LABEL.test") == [12, 12, 14]
        assert found(store, "eva@xn--exmple-cua.test", " ＥＶＡ@EXÄMPLE.test", "Ann@Label.test") == [11, 13, 3]
        for taken in ("eva@exämple.test", "ANN@label.test", "ＥＶＡ@EXÄMPLE.test"):
            with pytest.raises(Invalid) as refusal:
                store.write(partial(users.create, taken, now=NOW)).result()
            assert refusal.value.errors == {"email": users.TAKEN}
        store.write(lambda: users.create("max@strasse.test", now=NOW)).result()


def test_accounts_that_share_a_mailbox_are_listed_until_one_of_them_is_suspended(old_url: str) -> None:
    schema.upgrade(old_url)
    with opening.connect(old_url) as store:
        pairs = store.read(email_addresses.shared_mailboxes).result()
        assert [(pair.account_id, pair.owner_id) for pair in pairs] == [(3, 14), (11, 12), (13, 12)]
        assert pairs[1].finding == (
            "Accounts 12 (Eva@exämple.test) and 11 (eva@xn--exmple-cua.test) share a mailbox."
            " Account 11 is found only by its e-mail exactly as written."
        )
        assert pairs[0].hint.endswith(
            ": musicsvc user suspend 'ａｎｎ@label.test', or: musicsvc user suspend Ann@Label.test"
        )
        findings = database.check_database(old_url, now=NOW)
        warnings = [warning("accounts", pair.finding, pair.hint) for pair in pairs]
        assert [finding for finding in findings if finding.check == "accounts"] == warnings

        def suspend() -> None:
            for email in ("ＥＶＡ@EXÄMPLE.test", "ann@label.test"):
                users.suspend(users.by_email(email), now=NOW)

        store.write(suspend).result()
        assert [pair.account_id for pair in store.read(email_addresses.shared_mailboxes).result()] == [11]


def test_a_request_finds_the_account_by_its_exact_spelling_first(old_url: str) -> None:
    schema.upgrade(old_url)
    with opening.connect(old_url) as store:
        listed = store.read(api_access.list).result()
        assert [(entry.request and entry.request.id, entry.user and entry.user.id) for entry in listed] == [
            (1, 12),
            (2, 11),
            (3, 12),
            (4, 14),
        ]
        with pytest.raises(Conflict, match="is pending already"):
            store.write(lambda: api_access.request("EVA@exämple.test", "x", "x", "x", now=NOW)).result()
        for email, request, account in (
            ("eva@exämple.test", 3, 12),
            ("eva@xn--exmple-cua.test", 2, 11),
            ("ANN@label.test", 4, 14),
        ):
            approval = store.write(partial(api_access.approve, email, now=NOW)).result()
            assert (approval.request.id, approval.user.id, approval.link) == (request, account, None)


def test_an_import_names_accounts_of_a_mailbox_as_the_command_line_does(old_url: str) -> None:
    schema.upgrade(old_url)
    names = ["eva@exämple.test", "eva@xn--exmple-cua.test", "ＡＮＮ@label.test", "Ann@Label.test"]
    with opening.connect(old_url) as store:
        known = store.read(accounts.load_exact).result()
        people = store.read(lambda: accounts.resolve(names, known, create=False, now=NOW)).result()
    assert [people.ids[accounts.get_key(name, known)] for name in names] == [12, 11, 14, 3]


@pytest.mark.slow
def test_an_upgrade_killed_after_any_statement_is_finished_by_the_next(
    new_database: Callable[..., str], *, long: bool
) -> None:
    applied, statements = schema.available()[:1], 3
    while AFTER not in applied:  # kills in later migrations: test_migrations_killed.py
        url = new_database(migrated=False)
        upgrades.migrate_to(url, BEFORE, ACCOUNTS, REQUESTS)
        assert upgrades.kill(url, statements) == -signal.SIGKILL
        with opening.open_unchecked(url) as store:
            applied = store.read(schema.applied).result()
        assert applied == schema.available()[: len(applied)]
        assert BEFORE in applied

        schema.upgrade(url)
        assert schema.upgrade(url) == []
        with opening.connect(url) as store:
            assert store.read(schema.problems).result() == []
            assert keys(store) == (KEYS, REQUEST_KEYS)
        statements += 1 if long else 8
    assert statements > 20
