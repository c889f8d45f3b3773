"""`import follows` in the store: follows, created accounts and refused rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from musicsvc.errors import Failure, Invalid
from musicsvc.store.accounts import email_addresses, user_search, users
from musicsvc.store.engine.sql import run
from musicsvc.store.engine.store import Store
from musicsvc.store.importing.people import follows
from musicsvc.store.importing.people.follows import Follows
from musicsvc.store.importing.runner import ImportOptions, Kind
from musicsvc.store.importing.summary import ImportSummary
from musicsvc.store.models import Follow, User
from tests.support.examples import examples
from tests.support.import_files import Import, import_file
from tests.support.refused_rows import reasons

Rows = Sequence[Mapping[str, object] | tuple[object, object]]


@pytest.fixture
def imported(store: Store, tmp_path: Path) -> Import:
    def run(rows: Rows, **options: Any) -> ImportSummary:
        named = [row if isinstance(row, Mapping) else dict(zip(follows.FIELDS, row, strict=True)) for row in rows]
        return import_file(store, tmp_path / "rows.jsonl", Follows(ImportOptions(**options)), named)

    return run


def counts(summary: ImportSummary, kind: str = "follows") -> tuple[int, int, int]:
    found = summary.counts[kind]
    return found.new, found.repeated, found.refused


def pairs(store: Store) -> list[tuple[str, str]]:
    """Return the follows by display name, the oldest first."""

    def read() -> list[tuple[str, str]]:
        names = dict(User.select(User.id, User.display_name).tuples().iterator())
        rows = Follow.select(Follow.follower, Follow.followed).order_by(Follow.id).tuples().iterator()
        return [(names[follower], names[followed]) for follower, followed in rows]

    return store.read(read).result()


def make(store: Store, *emails: str) -> None:
    store.write(lambda: [users.create(email, now=1).id for email in emails]).result()


def test_accounts_are_found_by_e_mail_in_whatever_case(store: Store, imported: Import) -> None:
    make(store, "ann@a.test", "ben@a.test")
    summary = imported([("ANN@a.test", " ben@A.test "), ("ben@a.test", "ann@a.test")])
    assert counts(summary) == (2, 0, 0)
    assert counts(summary, "accounts") == (0, 4, 0)
    assert pairs(store) == [("ann", "ben"), ("ben", "ann")]


def test_unknown_accounts_are_refused_by_line_and_nothing_is_made(store: Store, imported: Import) -> None:
    make(store, "ann@a.test")
    summary = imported([("ann@a.test", "747"), ("8", "no@a.test"), ("ann@a.test", "ann@a.test")])
    unknown = "no such account; --create-missing creates it"
    assert reasons(summary) == [
        (1, f"followed: {unknown}: '747'"),
        (2, f"follower and followed: {unknown}: '8', 'no@a.test'"),
        (3, "an account cannot follow itself"),
    ]
    assert counts(summary) == (0, 0, 3)
    assert (pairs(store), store.read(User.select().count).result()) == ([], 1)


def test_missing_accounts_are_made_where_that_is_asked_for(store: Store, imported: Import) -> None:
    rows = [(0, 747), ("Ann@A.test", "x Y/é"), ("747", "ann@a.test"), ("0", 747)]
    summary = imported(rows, create_missing=True)
    assert (counts(summary), counts(summary, "accounts")) == ((3, 1, 0), (4, 4, 0))
    made = {user.display_name: user for user in store.read(users.list).result()}
    assert {name: user.external_id for name, user in made.items()} == {
        "0": "0",
        "747": "747",
        "Ann": None,
        "x Y/é": "x Y/é",
    }
    assert (made["747"].email, made["Ann"].email) == ("747@import.test", "Ann@A.test")
    assert all(email_addresses.problem(user.email) is None for user in made.values())
    assert not any(user.api_access or user.password_hash or user.admin for user in made.values())
    assert pairs(store) == [("0", "747"), ("Ann", "x Y/é"), ("747", "Ann")]
    assert store.read(lambda: [row.display_name for row in user_search.find("x y", 5)]).result() == ["x Y/é"]


def test_a_second_run_changes_nothing_and_needs_no_account_made(store: Store, imported: Import) -> None:
    rows = [("1", "2"), ("2", "3"), ("3", "1"), ("1", "2")]
    imported(rows, create_missing=True)
    before = pairs(store)
    for options in ({"create_missing": True}, {}, {"dry_run": True}):
        again = imported(rows, **options)
        assert (counts(again), counts(again, "accounts")) == ((0, 4, 0), (0, 8, 0))
    assert pairs(store) == before == [("1", "2"), ("2", "3"), ("3", "1")]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"follower": "1"}, "followed is missing"),
        ({"follower": " ", "followed": None}, "follower is missing; followed is missing"),
        ({"follower": "1", "followed": 1.5}, "followed must be text"),
        ({"follower": "\x07", "followed": "\u200b"}, "follower is missing; followed is missing"),
        ({"follower": "a\0b", "followed": "1"}, "follower must not contain a NUL character"),
        ({"follower": "1", "followed": "x" * 256}, "followed must not be longer than 255 characters"),
        ({"follower": "1", "followed": "a@b@"}, "followed: neither an account nor a valid e-mail address: 'a@b@'"),
        ({"follower": "ann@a.test", "followed": "ANN@a.test"}, "an account cannot follow itself"),
    ],
)
def test_a_row_that_cannot_be_is_refused_and_the_rest_goes_in(
    store: Store, imported: Import, row: dict[str, Any], reason: str
) -> None:
    summary = imported([("8", "9"), row, ("9", "8")], create_missing=True)
    assert reasons(summary) == [(2, reason)]
    assert pairs(store) == [("8", "9"), ("9", "8")]
    assert [user.external_id for user in store.read(users.list).result()] == ["8", "9"]


def test_an_account_is_not_made_under_the_e_mail_of_another(store: Store, imported: Import) -> None:
    make(store, "747@import.test")
    summary = imported([("747", "8"), ("8", "9"), ("id-0@import.test", "8")], create_missing=True)
    assert reasons(summary) == [
        (1, "follower: cannot be created: the e-mail for this id belongs to an account: '747'"),
        (3, "follower: neither an account nor a valid e-mail address: 'id-0@import.test'"),
    ]
    assert pairs(store) == [("8", "9")]


def test_an_account_that_an_import_made_is_the_same_by_its_id_and_by_its_e_mail(store: Store, imported: Import) -> None:
    imported([("8", "x Y")], create_missing=True)
    email = store.read(lambda: users.list()[-1].email).result()
    for options in ({}, {"create_missing": True}):
        summary = imported([("8@import.test", email), ("x Y", email), ("8@Import.TEST", "8")], **options)
        itself = "an account cannot follow itself"
        assert (counts(summary), reasons(summary)) == ((0, 1, 2), [(2, itself), (3, itself)])


def test_a_file_without_the_columns_says_how_to_name_them(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "edges.csv"
    file.write_text("who,them\n0,1\n")

    def run(*given: str) -> ImportSummary:
        return import_file(store, file, Follows(ImportOptions(given, create_missing=True)))

    with pytest.raises(Failure, match="--map COLUMN=follower"):
        run()
    with pytest.raises(Invalid):
        run("who=follower", "them=friend")
    assert counts(run("who=follower", "them=followed")) == (1, 0, 0)


NAMES = some.sampled_from(["1", "2", "3", "A", "a", "a@x.test", "A@X.test", "b@x.test", " ", "@", "1@import.test"])


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    earlier=some.lists(some.tuples(NAMES, NAMES), max_size=4),
    rows=some.lists(some.tuples(NAMES, NAMES), max_size=8),
    size=some.integers(1, 5),
    create=some.booleans(),
)
def test_a_dry_run_tells_what_comes_and_a_second_run_finds_nothing_to_do(
    store: Store, imported: Import, earlier: Rows, rows: Rows, size: int, create: bool
) -> None:
    store.write(lambda: User.delete().execute() and None).result()
    store.write(lambda: run("DELETE FROM account_search")).result()
    with pytest.MonkeyPatch.context() as patch:
        imported(earlier, create_missing=True)
        patch.setattr(Kind, "rows_a_unit", size)
        before = pairs(store)
        predicted = imported(rows, create_missing=create, dry_run=True)
        assert pairs(store) == before
        done = imported(rows, create_missing=create)
        assert counts(predicted) == counts(done)
        assert counts(predicted, "accounts") == counts(done, "accounts")
        assert predicted.refused == done.refused
        after = pairs(store)
        assert len(after) == len(before) + done.counts["follows"].new
        again = imported(rows, create_missing=create)
        assert counts(again) == (0, done.counts["follows"].new + done.counts["follows"].repeated, len(done.refused))
        assert pairs(store) == after
