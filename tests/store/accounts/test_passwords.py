"""Password rules and hashes."""

import unicodedata
from typing import Any

import argon2
import pytest

from musicsvc.store.accounts import passwords

EMAIL = "Ada.Lovelace@example.test"


def test_a_password_is_hashed_with_argon2id_by_owasp_and_verified() -> None:
    hashed = passwords.hash_password("correct horse")
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert passwords.verify(hashed, "correct horse")
    assert not passwords.verify(hashed, "correct horse ")
    assert not passwords.verify("no hash", "correct horse")


def test_no_hash_costs_as_much_as_any_and_never_matches() -> None:
    assert not passwords.HASHER.check_needs_rehash(passwords.NOBODYS)
    hashed = passwords.hash_password("correct horse")
    assert passwords.matches(hashed, "correct horse")
    assert not passwords.matches(hashed, "another horse")
    assert not passwords.matches(None, "correct horse")


@pytest.mark.parametrize("password", ["1234567", "x" * 129, "", EMAIL, EMAIL.swapcase()])
def test_too_short_too_long_or_the_email_is_refused(password: str) -> None:
    assert passwords.check(password, email=EMAIL, hosted=False)


@pytest.mark.parametrize("password", ["12345678", "x" * 128, "密码密码密码密码", "        "])
def test_length_counts_code_points_and_nothing_is_trimmed(password: str) -> None:
    assert passwords.check(password, email=EMAIL, hosted=False) is None


def test_the_commonest_are_refused_only_on_a_hosted_service() -> None:
    for password in ("password", "Password", "12345678"):
        assert passwords.check(password, email=EMAIL, hosted=False) is None
        assert "most common" in str(passwords.check(password, email=EMAIL, hosted=True))
    assert passwords.check("an uncommon phrase", email=EMAIL, hosted=True) is None
    assert "most common" in str(passwords.check("ＰＡＳＳＷＯＲＤ", email=EMAIL, hosted=True))


TYPED = "cafe\u0301 au lait ﬁn"  # with two characters that NFKC replaces
COMPOSED = "café au lait fin"


@pytest.mark.slow
def test_a_password_is_right_however_its_characters_are_composed() -> None:
    hashes = [passwords.hash_password(stored) for stored in (TYPED, COMPOSED)]
    for typed in (TYPED, COMPOSED, unicodedata.normalize("NFD", COMPOSED), "ｃafé au lait fin"):
        assert [passwords.matches(hashed, typed) for hashed in hashes] == [True, True]
    assert not passwords.matches(hashes[0], "cafe au lait fin")


def test_a_hash_of_before_is_right_for_the_password_as_it_was_typed() -> None:
    before = passwords.HASHER.hash(TYPED)
    assert passwords.matches(before, TYPED)
    assert not passwords.matches(before, COMPOSED)  # as before
    assert not passwords.matches(before, TYPED[:-1])


@pytest.mark.parametrize(("typed", "hashes"), [(COMPOSED, 1), (TYPED, 2), ("e\u0301" * 65, 1)])
def test_the_number_of_hashes_depends_on_the_typed_text_alone(
    monkeypatch: pytest.MonkeyPatch, typed: str, hashes: int
) -> None:
    counted: list[int] = []
    verify = argon2.PasswordHasher.verify

    def noted(*arguments: Any) -> bool:
        counted[-1] += 1
        return verify(*arguments)

    monkeypatch.setattr(argon2.PasswordHasher, "verify", noted)
    for hashed in (None, passwords.hash_password(typed), passwords.HASHER.hash(typed), passwords.hash_password("no")):
        counted.append(0)
        passwords.matches(hashed, typed)
    assert counted == [hashes] * 4


@pytest.mark.parametrize(
    ("typed", "accepted"),
    [
        ("e\u0301" * 4, False),
        ("e\u0301" * 8, True),
        ("e\u0301" * 64, True),
        ("e\u0301" * 65, False),
        ("ﷺ", False),
        ("ﷺ" * 128, True),
    ],
)
def test_the_length_counts_what_was_typed_and_is_enough_in_nfkc(typed: str, *, accepted: bool) -> None:
    assert (passwords.check(typed, email=EMAIL, hosted=False) is None) == accepted
